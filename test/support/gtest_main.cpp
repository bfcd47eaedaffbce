#include <gmock/gmock.h>

#include "time_limit.h"

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new hvd::test::TimeLimit);
  return RUN_ALL_TESTS();
}
