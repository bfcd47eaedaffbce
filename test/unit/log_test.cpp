#include "observe/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace hvd {
namespace {

template <typename Function>
std::string stderr_of(Function function) {
  testing::internal::CaptureStderr();
  function();
  return testing::internal::GetCapturedStderr();
}

TEST(Logger, writes_rank_level_and_text) {
  const Logger logger(LogLevel::trace, true, 2, 4);
  EXPECT_EQ(stderr_of([&] { logger.warning("tensor '{}' waits {} s", "a%b{}", 60); }),
            "[hvd 2/4] warning: tensor 'a%b{}' waits 60 s\n");
  EXPECT_EQ(stderr_of([&] { logger.fatal("gone"); }), "[hvd 2/4] fatal: gone\n");
}

TEST(Logger, has_no_rank_before_it_is_known) {
  EXPECT_EQ(stderr_of([] { Logger(LogLevel::info, true).info("text"); }), "[hvd] info: text\n");
}

TEST(Logger, writes_from_its_level_on) {
  const Logger logger(LogLevel::warning, true, 0, 1);
  EXPECT_EQ(stderr_of([&] {
              logger.trace("no");
              logger.debug("no");
              logger.info("no");
              logger.error("yes");
            }),
            "[hvd 0/1] error: yes\n");
  EXPECT_FALSE(logger.enabled(LogLevel::info));
  EXPECT_TRUE(logger.enabled(LogLevel::warning));
}

TEST(Logger, tells_the_time_unless_it_is_hidden) {
  const std::string text = stderr_of([] { Logger(LogLevel::info, false, 0, 1).info("text"); });
  ASSERT_NE(text.find('['), std::string::npos) << text;
  std::string form = text;
  std::replace_if(
      form.begin(), form.begin() + static_cast<std::ptrdiff_t>(form.find('[')),
      [](char c) { return c >= '0' && c <= '9'; }, '9');
  EXPECT_EQ(form, "9999-99-99 99:99:99.999 [hvd 0/1] info: text\n") << text;
}

TEST(Logger, keeps_lines_whole_when_threads_and_copies_write_at_once) {
  const Logger logger(LogLevel::info, true, 0, 1);
  const std::string text = stderr_of([&] {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([copy = logger] {
        for (int line = 0; line < 100; ++line) copy.info("one line");
      });
    }
  });
  std::string expected;
  for (int line = 0; line < 400; ++line) expected += "[hvd 0/1] info: one line\n";
  EXPECT_EQ(text, expected);
}

}  // namespace
}  // namespace hvd
