#include <hvd/torch/functions.h>

#include <fmt/format.h>
#include <torch/serialize/archive.h>

#include <sstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include <hvd/hvd.h>
#include <hvd/torch/tensor.h>

#include "inventory.h"

namespace hvd::torch {

namespace {

using NamedTensors = std::vector<std::pair<std::string, ::torch::Tensor>>;

struct Transfer {
  ::torch::Tensor target;
  ::torch::Tensor buffer;  // `target` itself when it is contiguous
  std::string name;
};

void broadcast_tensors(const NamedTensors& tensors, int root_rank) {
  const ::torch::NoGradGuard no_grad;
  Inventory inventory;
  std::vector<Transfer> transfers;
  std::unordered_map<const void*, std::string> first_name;
  for (const auto& [name, tensor] : tensors) {
    const auto [known, is_first] = first_name.try_emplace(tensor.unsafeGetTensorImpl(), name);
    inventory.push_back({name, data_type(tensor.scalar_type()), shape(tensor), is_first ? "" : known->second});
    if (is_first) transfers.push_back({tensor, {}, fmt::format("broadcast_parameters.{}", name)});
  }
  require_agreement("broadcast_parameters", inventory);

  std::vector<Handle> handles;
  handles.reserve(transfers.size());
  for (Transfer& transfer : transfers) {
    transfer.buffer = transfer.target.detach().contiguous();
    handles.push_back(broadcast_async(view(transfer.buffer), {.name = transfer.name, .root_rank = root_rank}));
  }
  for (const Handle& handle : handles) handle.wait();
  for (const Transfer& transfer : transfers) {
    if (!transfer.target.is_contiguous()) transfer.target.detach().copy_(transfer.buffer);
  }
}

void append(NamedTensors& tensors, const ::torch::OrderedDict<std::string, ::torch::Tensor>& named) {
  for (const auto& item : named) {
    if (item.value().defined()) tensors.emplace_back(item.key(), item.value());
  }
}

// Optimizer::save() writes the parameters' state; the groups' options have to be added.
std::string saved_form(::torch::optim::Optimizer& optimizer) {
  ::torch::serialize::OutputArchive archive;
  ::torch::serialize::OutputArchive state(archive.compilation_unit());
  optimizer.save(state);
  archive.write("state", state);
  const auto& groups = optimizer.param_groups();
  for (std::size_t k = 0; k < groups.size(); ++k) {
    ::torch::serialize::OutputArchive options(archive.compilation_unit());
    groups[k].options().serialize(options);
    archive.write(fmt::format("options{}", k), options);
  }
  std::ostringstream stream;
  archive.save_to(stream);
  return std::move(stream).str();
}

void load_saved_form(::torch::optim::Optimizer& optimizer, const std::string& bytes) {
  ::torch::serialize::InputArchive archive;
  ::torch::serialize::InputArchive state;
  archive.load_from(bytes.data(), bytes.size());
  archive.read("state", state);
  optimizer.state().clear();  // load() leaves what the root has no state for
  optimizer.load(state);
  auto& groups = optimizer.param_groups();
  for (std::size_t k = 0; k < groups.size(); ++k) {
    ::torch::serialize::InputArchive options;
    archive.read(fmt::format("options{}", k), options);
    groups[k].options().serialize(options);
  }
}

}  // namespace

void broadcast_parameters(const ::torch::nn::Module& module, int root_rank) {
  NamedTensors tensors;
  append(tensors, module.named_parameters());
  append(tensors, module.named_buffers());
  broadcast_tensors(tensors, root_rank);
}

void broadcast_parameters(const ::torch::OrderedDict<std::string, ::torch::Tensor>& named_parameters, int root_rank) {
  NamedTensors tensors;
  append(tensors, named_parameters);
  broadcast_tensors(tensors, root_rank);
}

void broadcast_optimizer_state(::torch::optim::Optimizer& optimizer, int root_rank) {
  const bool is_root = rank() == root_rank;
  std::string bytes = is_root ? saved_form(optimizer) : std::string();
  std::vector<std::int64_t> length{static_cast<std::int64_t>(bytes.size())};
  broadcast(length, {.name = "broadcast_optimizer_state.length", .root_rank = root_rank});
  bytes.resize(static_cast<std::size_t>(length[0]));
  broadcast(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()),
            {.name = "broadcast_optimizer_state", .root_rank = root_rank});
  if (!is_root) load_saved_form(optimizer, bytes);
}

}  // namespace hvd::torch
