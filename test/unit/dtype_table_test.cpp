#include "dtype_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace hvd::docs {
namespace {

TEST(DtypeTable, InTheDocumentationIsUpToDate) {
  std::ostringstream page;
  page << std::ifstream(HVD_DTYPES_PAGE).rdbuf();
  EXPECT_EQ(page.str(), dtypes_page()) << "run build/dev/tools/docs/dtype_table > docs/dtypes.md";
}

}  // namespace
}  // namespace hvd::docs
