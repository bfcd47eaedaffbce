#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "../support/child.h"
#include "../support/programs/random_program.h"
#include "../support/world.h"

// Random programs against the reference, in a child process, so that a crash or a hang is a failure like any other.
// What fails is made smaller in further children, and printed with what repeats it.
//
//   RANDOM_PROGRAM_SECONDS=3600 RANDOM_PROGRAM_SEED=17 build/test/unit/random_programs_test
//   RANDOM_PROGRAM_EDITS="j0 j1 j2"                                edits to make to every program; see possible_edits()
//   build/test/unit/random_programs_test --program 17 k3,5 r2     runs one program, with edits
//   build/test/unit/random_programs_test --show 17 k3,5 r2        prints it
namespace hvd::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::stoull(text) : otherwise;
}

// ---- in the child

constexpr auto hang_limit = sanitized ? 60s : 20s;  // in the child, which then says where each rank is

int run_one(std::uint64_t seed, const std::vector<Edit>& edits, std::chrono::seconds limit) {
  const auto errors = run(edited(random_program(seed), edits), limit);
  for (std::size_t i = 0; i < errors.size() && i < 5; ++i) std::cout << errors[i] << '\n';
  if (errors.size() > 5) std::cout << "and " << errors.size() - 5 << " more\n";
  std::cout.flush();
  return errors.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_many(std::uint64_t first, std::chrono::seconds time, const std::vector<Edit>& edits) {
  const auto end = Clock::now() + time;
  std::uint64_t seed = first;
  for (; Clock::now() < end; ++seed) {
    std::cout << "seed " << seed << std::endl;
    if (run_one(seed, edits, hang_limit) != EXIT_SUCCESS) return EXIT_FAILURE;
  }
  std::cout << "programs " << seed - first << std::endl;
  return EXIT_SUCCESS;
}

// ---- in the parent

constexpr auto program_limit = hang_limit + 20s;

std::uint64_t last_number(const std::string& text, const std::string& word) {
  const std::size_t at = text.rfind(word);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + word.size()));
}

std::vector<Edit> common_edits() {
  const char* text = std::getenv("RANDOM_PROGRAM_EDITS");
  std::istringstream words(text != nullptr ? text : "");
  return {std::istream_iterator<std::string>(words), {}};
}

std::vector<std::string> arguments_for(std::uint64_t seed, const std::vector<Edit>& edits) {
  std::vector<std::string> arguments{"--program", std::to_string(seed)};
  arguments.insert(arguments.end(), edits.begin(), edits.end());
  return arguments;
}

// Tries as often as the failure is rare.
bool fails(std::uint64_t seed, const std::vector<Edit>& edits, int tries, std::string& output) {
  for (; tries > 0; --tries) {
    ChildResult result = run_self(arguments_for(seed, edits), program_limit);
    if (result.ok()) continue;
    output = result.output + (result.timed_out ? "killed after its time limit\n" : "");
    return true;
  }
  return false;
}

// Greedily, while it still fails and there is time.
std::vector<Edit> shrunk(std::uint64_t seed, int tries, std::chrono::seconds time, std::string& output) {
  const auto end = Clock::now() + time;
  std::vector<Edit> edits = common_edits();
  for (bool smaller = true; smaller;) {
    smaller = false;
    const RandomProgram now = edited(random_program(seed), edits);
    for (const std::vector<Edit>& group : possible_edits(now)) {
      if (Clock::now() > end) return edits;
      std::vector<Edit> more = edits;
      more.insert(more.end(), group.begin(), group.end());
      if (to_string(edited(random_program(seed), more)) == to_string(edited(random_program(seed), edits))) continue;
      if (!fails(seed, more, tries, output)) continue;
      edits = std::move(more);
      smaller = true;
    }
  }
  return edits;
}

// How often a program has to be run to see it fail; 0: it did not fail in many runs.
int tries_for(std::uint64_t seed, std::string& output) {
  const auto end = Clock::now() + 30s;
  int failures = 0;
  int runs = 0;
  for (; runs < 3 || (failures < 3 && runs < 200 && Clock::now() < end); ++runs)
    failures += fails(seed, common_edits(), 1, output) ? 1 : 0;
  if (failures == 0) return 0;
  return failures == runs ? 1 : 4 * runs / failures;
}

std::string report(std::uint64_t seed, std::string output) {
  output.erase(0, output.rfind("seed " + std::to_string(seed)));
  const int tries = tries_for(seed, output);
  const std::chrono::seconds time(number_from("RANDOM_PROGRAM_SHRINK_SECONDS", 90));
  std::vector<Edit> edits = common_edits();
  if (tries > 0) edits = shortened(random_program(seed), shrunk(seed, tries, time, output));
  std::ostringstream text;
  text << "it says:\n" << output << "\nseed " << seed;
  if (tries == 0) text << ", which did not fail again";
  if (tries > 1) text << ", which fails in about one of " << tries / 4.0 << " runs";
  text << "; to repeat: --program " << seed;
  for (const Edit& edit : edits) text << ' ' << edit;
  text << '\n' << to_string(edited(random_program(seed), edits));
  return text.str();
}

TEST(RandomPrograms, GiveTheReferenceWhateverTheOrder) {
  const std::uint64_t first = number_from("RANDOM_PROGRAM_SEED", 1);
  const std::chrono::seconds time(number_from("RANDOM_PROGRAM_SECONDS", 5));
  std::vector<std::string> arguments{"--programs", std::to_string(first), std::to_string(time.count())};
  for (const Edit& edit : common_edits()) arguments.push_back(edit);
  const ChildResult result = run_self(arguments, time + 2 * program_limit);
  if (result.ok()) {
    std::cout << last_number(result.output, "programs ") << " programs, from seed " << first << '\n';
    return;
  }
  FAIL() << report(last_number(result.output, "seed "), result.output);
}

TEST(RandomPrograms, ShrinkToAnyStepThatIsLeft) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const RandomProgram whole = random_program(seed);
    for (const std::vector<Edit>& group : possible_edits(whole)) {
      const RandomProgram smaller = edited(whole, group);
      EXPECT_LE(smaller.ranks, whole.ranks);
      for (const Phase& phase : smaller.phases) {
        for (const Stream& stream : phase.streams) {
          for (const Part& part : stream) {
            for (const Step& step : part) EXPECT_LT(step.ranks.back(), smaller.ranks) << to_string(step);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace hvd::test

int main(int argc, char** argv) {
  using namespace hvd::test;
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() >= 2 && arguments[0].starts_with("--") && !arguments[0].starts_with("--gtest")) {
    const std::uint64_t seed = std::stoull(arguments[1]);
    std::vector<Edit> edits(arguments.begin() + 2, arguments.end());
    if (arguments[0] == "--programs") {
      const std::chrono::seconds time(std::stoll(edits.at(0)));
      edits.erase(edits.begin());
      return run_many(seed, time, edits);
    }
    if (arguments[0] == "--program") return run_one(seed, edits, hang_limit / 2);
    std::cout << to_string(edited(random_program(seed), edits));
    return EXIT_SUCCESS;
  }
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
