#include "profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace hvd::bench {

namespace {

namespace fs = std::filesystem;

Profile::Tensor parse_tensor(const nlohmann::json& json) {
  constexpr std::int64_t most = std::int64_t{1} << 40;  // so that no sum of them overflows
  Profile::Tensor tensor{json.at("name").get<std::string>(), json.at("shape").get<std::vector<std::int64_t>>(), 1};
  for (const std::int64_t dim : tensor.shape) {
    if (dim < 1 || dim > most || tensor.elements > static_cast<std::size_t>(most / dim)) {
      throw std::invalid_argument(fmt::format("tensor '{}' has a shape that cannot be", tensor.name));
    }
    tensor.elements *= static_cast<std::size_t>(dim);
  }
  return tensor;
}

std::string known_profiles(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::size_t Profile::elements() const {
  std::size_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.elements;
  return sum;
}

Profile parse_profile(std::string_view text) {
  Profile profile;
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    profile.name = json.at("name").get<std::string>();
    for (const nlohmann::json& tensor : json.at("tensors")) profile.tensors.push_back(parse_tensor(tensor));
  } catch (const nlohmann::json::exception& error) {
    throw std::invalid_argument(fmt::format("is no profile: {}", error.what()));
  }
  if (profile.tensors.empty()) throw std::invalid_argument("is no profile: there are no tensors in it");
  std::vector<std::string_view> names;
  for (const Profile::Tensor& tensor : profile.tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw std::invalid_argument(fmt::format("has two tensors called '{}'", *twice));
  return profile;
}

Profile load_profile(const std::string& what, const std::string& folder) {
  const bool is_path = what.ends_with(".json");
  const fs::path path = is_path ? fs::path(what) : fs::path(folder) / (what + ".json");
  std::ifstream file(path);
  if (!file) {
    throw std::invalid_argument(fmt::format("there is no profile '{}'{}", what,
                                            is_path ? "" : fmt::format("; there are: {}", known_profiles(folder))));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    return parse_profile(text);
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(fmt::format("'{}' {}", path.string(), error.what()));
  }
}

}  // namespace hvd::bench
