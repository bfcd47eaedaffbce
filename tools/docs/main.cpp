// Prints docs/dtypes.md.
#include <cstdio>

#include "dtype_table.h"

int main() { return std::fputs(hvd::docs::dtypes_page().c_str(), stdout) < 0 ? 1 : 0; }
