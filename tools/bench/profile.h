#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hvd::bench {

// The gradients of a model: tools/profiles/NAME.json.
struct Profile {
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> shape;
    std::size_t elements = 0;
  };
  std::string name;
  std::vector<Tensor> tensors;  // as the model declares them

  std::size_t elements() const;
};

// Throws std::invalid_argument that says what is wrong with the text.
Profile parse_profile(std::string_view json);

// `what` is the name of a profile in the folder, or the path of another (it ends in .json). Throws
// std::invalid_argument that lists the profiles when there is none, or says what is wrong with the file.
Profile load_profile(const std::string& what, const std::string& folder);

}  // namespace hvd::bench
