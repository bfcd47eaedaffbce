#pragma once

#include <string>

namespace hvd::docs {

// docs/dtypes.md, in Markdown: which dtype can be reduced how, and which operation carries it.
std::string dtypes_page();

}  // namespace hvd::docs
