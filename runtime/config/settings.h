#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <hvd/config.h>

namespace hvd {

// What a setting's value is, where it lives in Config, and which values it may have.
struct BytesSetting {
  std::int64_t Config::*member;
  std::int64_t least;
  std::int64_t most;
  std::int64_t multiple_of = 1;
};
struct SecondsSetting {
  std::chrono::duration<double> Config::*member;
};
struct SwitchedOffSetting {  // a flag that, when true, sets a duration to 0
  std::chrono::duration<double> Config::*member;
};
struct TextSetting {
  std::string Config::*member;
};
struct OperationOnRankSetting {  // "name:rank", or nothing
  std::string Config::*member;
};
struct FlagSetting {
  bool Config::*member;
};
struct LogLevelSetting {
  LogLevel Config::*member;
};
struct CountsSetting {
  std::vector<int> Config::*member;
};
struct NumberSetting {
  std::int64_t Config::*member;
  std::int64_t least;
  std::int64_t most;
};
// One of a few words; they stand for 0, 1, 2, ...
struct ChoiceSetting {
  std::span<const std::string_view> words;
  std::size_t (*get)(const Config& config);
  void (*set)(Config& config, std::size_t choice);
};
struct SetsSetting {  // not from text
  std::vector<std::vector<int>> Config::*member;
};
using SettingKind =
    std::variant<BytesSetting, SecondsSetting, SwitchedOffSetting, TextSetting, OperationOnRankSetting, FlagSetting,
                 LogLevelSetting, CountsSetting, NumberSetting, ChoiceSetting, SetsSetting>;

struct Setting {
  std::string_view field;     // of Config; empty when another row has it
  std::string_view variable;  // HVD_*, empty: none
  std::string_view alias;     // HOROVOD_*, empty: none
  bool must_agree;            // on all ranks
  SettingKind kind;
};

// All of them; a later row's alias wins over an earlier one's.
std::span<const Setting> settings();

// Sets the field from text. Returns what is wrong with the text, or nothing.
std::string set_from_text(const Setting& setting, std::string_view text, Config& config);
// What is wrong with the field's value, or nothing.
std::string range_problem(const Setting& setting, const Config& config);
// The field's value for people; unlike values have unlike texts.
std::string value_text(const Setting& setting, const Config& config);

// For a Config that code has filled: throws InvalidArgumentError that names the field, its value and the range.
void check_config(const Config& config);

}  // namespace hvd
