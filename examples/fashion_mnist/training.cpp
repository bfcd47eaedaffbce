#include "training.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <hvd/hvd.h>
#include <hvd/torch.h>

#include "checkpoint.h"
#include "dataset.h"
#include "net.h"
#include "progress.h"

namespace {

// Runs what may fail on some ranks only: all go on, or all end and one that failed says why.
void on_all_ranks(const std::function<void()>& action) {
  std::string failure;
  try {
    action();
  } catch (const std::exception& error) {
    failure = error.what();
    if (failure.empty()) failure = "unknown error";
  }
  std::vector<int> first{failure.empty() ? hvd::size() : hvd::rank()};
  hvd::allreduce(first, {.name = "first rank that failed", .op = hvd::ReduceOp::min});
  if (first[0] == hvd::rank()) throw std::runtime_error(failure);
  if (first[0] < hvd::size()) throw FailedElsewhere();
}

void print(const std::string& line) {
  if (hvd::rank() != 0) return;
  std::fputs((line + '\n').c_str(), stdout);
  std::fflush(stdout);
}

std::string counted(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// The rank's share of the cores, and no more than it may run on.
int default_threads() {
  cpu_set_t allowed;
  const int bound = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(cores / hvd::local_size(), 1, std::max(bound, 1));
}

struct Images {
  explicit Images(const Dataset& data)
      : pixels(torch::tensor(data.pixels).view({data.count, 1, data.rows, data.columns})),
        labels(torch::tensor(data.labels).to(torch::kInt64)) {}

  // Brightness with mean 0 and deviation 1 over the training set.
  static torch::Tensor normalized(const torch::Tensor& bytes) {
    return bytes.to(torch::kFloat32).div_(255).sub_(0.286).div_(0.353);
  }

  torch::Tensor pixels;  // uint8[count, 1, 28, 28]
  torch::Tensor labels;  // int64[count]
};

Images read_images(const std::filesystem::path& folder, const std::string& part) {
  const Dataset data =
      read_dataset(folder / (part + "-images-idx3-ubyte.gz"), folder / (part + "-labels-idx1-ubyte.gz"));
  if (data.rows != 28 || data.columns != 28) {
    throw std::runtime_error(
        fmt::format("the images in {} have {} x {} pixels, not 28 x 28", folder.string(), data.rows, data.columns));
  }
  return Images(data);
}

// Of all ranks together: each tests its own part, and every image is tested once.
double test_accuracy(Net& net, const Images& test) {
  const torch::NoGradGuard no_grad;
  constexpr std::int64_t batch = 500;
  const std::int64_t count = test.labels.size(0);
  const std::int64_t end = count * (hvd::rank() + 1) / hvd::size();
  std::vector<std::int64_t> correct_and_tested{0, 0};
  for (std::int64_t first = count * hvd::rank() / hvd::size(); first < end; first += batch) {
    const std::int64_t last = std::min(first + batch, end);
    const auto guess = net->forward(Images::normalized(test.pixels.slice(0, first, last))).argmax(1);
    correct_and_tested[0] += guess.eq(test.labels.slice(0, first, last)).sum().item<std::int64_t>();
    correct_and_tested[1] += last - first;
  }
  hvd::allreduce(correct_and_tested, {.name = "test accuracy", .op = hvd::ReduceOp::sum});
  return static_cast<double>(correct_and_tested[0]) / static_cast<double>(correct_and_tested[1]);
}

// FNV-1a over the bytes of all parameters.
std::uint64_t hash_of(const Net& net) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const auto& parameter : net->parameters()) {
    const torch::Tensor values = parameter.detach().contiguous();
    const auto* bytes = static_cast<const std::uint8_t*>(values.data_ptr());
    for (std::size_t k = 0; k < values.nbytes(); ++k) hash = (hash ^ bytes[k]) * 0x100000001b3ULL;
  }
  return hash;
}

bool weights_agree(const Net& net) {
  const std::vector<std::uint64_t> hashes = hvd::allgather(std::vector{hash_of(net)}, {.name = "hash of the weights"});
  if (std::set(hashes.begin(), hashes.end()).size() == 1) {
    print(fmt::format("weights agree on {} rank{}: hash {:016x}", hashes.size(), hashes.size() == 1 ? "" : "s",
                      hashes[0]));
    return true;
  }
  std::string text = "fashion_mnist: weights differ:";
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) text += fmt::format(" [{}] {:016x};", rank, hashes[rank]);
  text.back() = '\n';
  if (hvd::rank() == 0) std::fputs(text.c_str(), stderr);
  return false;
}

}  // namespace

bool train(const Options& options) {
  using Clock = std::chrono::steady_clock;
  const int threads = options.threads > 0 ? options.threads : default_threads();
  at::set_num_threads(threads);
  torch::manual_seed(options.seed);

  std::vector<Images> sets;
  on_all_ranks([&] {
    sets.push_back(read_images(options.data_dir, "train"));
    sets.push_back(read_images(options.data_dir, "t10k"));
  });
  const Images& training = sets[0];
  const Images& test = sets[1];

  Net net;
  torch::optim::SGD sgd(net->parameters(),
                        torch::optim::SGDOptions(options.learning_rate).momentum(0.9).nesterov(true));
  hvd::torch::LearningRateWarmup warmup(sgd, {.warmup_epochs = 1.0});
  std::vector<int> epochs_done{0};
  on_all_ranks([&] {
    if (options.resume && hvd::rank() == 0) epochs_done[0] = load_checkpoint(options.checkpoint, net, sgd);
  });
  hvd::broadcast(epochs_done, {.name = "epochs done", .root_rank = 0});
  hvd::torch::broadcast_parameters(*net, /*root_rank=*/0);
  hvd::torch::broadcast_optimizer_state(sgd, /*root_rank=*/0);
  hvd::torch::DistributedOptimizer optimizer(sgd, net->named_parameters());

  hvd::torch::DistributedSampler sampler(static_cast<std::size_t>(training.labels.size(0)), {.seed = options.seed});
  const auto batch_size = static_cast<std::size_t>(options.batch_size);
  std::size_t steps = (sampler.local_size() + batch_size - 1) / batch_size;
  if (options.max_steps > 0) steps = std::min(steps, static_cast<std::size_t>(options.max_steps));
  print(fmt::format("{} images, {} with {} each, {} x {} images a step, {} steps an epoch", training.labels.size(0),
                    counted(static_cast<std::size_t>(hvd::size()), "rank"),
                    counted(static_cast<std::size_t>(threads), "thread"), hvd::size(), options.batch_size, steps));

  double accuracy = 0;
  double train_seconds = 0;
  std::int64_t trained = 0;
  if (epochs_done[0] >= options.epochs) accuracy = test_accuracy(net, test);
  for (int epoch = epochs_done[0]; epoch < options.epochs; ++epoch) {
    const std::string title = fmt::format("epoch {}/{}", epoch + 1, options.epochs);
    const Clock::time_point start = Clock::now();
    std::int64_t images = 0;
    double loss_sum = 0;
    {
      const auto all = static_cast<std::int64_t>(std::min(steps * batch_size, sampler.local_size())) * hvd::size();
      Progress progress(hvd::rank() == 0 && !options.no_progress, title, all);
      sampler.set_epoch(static_cast<std::size_t>(epoch));
      for (std::size_t step = 0; step < steps; ++step) {
        const auto drawn = sampler.next(batch_size).value();
        const auto batch = torch::tensor(std::vector<std::int64_t>(drawn.begin(), drawn.end()));
        warmup.set_progress(epoch + static_cast<double>(step) / static_cast<double>(steps));
        optimizer.zero_grad();
        const auto output = net->forward(Images::normalized(training.pixels.index_select(0, batch)));
        auto loss = torch::nll_loss(output, training.labels.index_select(0, batch));
        loss.backward();
        optimizer.step();
        loss_sum += loss.item<double>();
        images += static_cast<std::int64_t>(drawn.size()) * hvd::size();
        progress.update(images, loss_sum / static_cast<double>(step + 1));
      }
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    trained += images;
    train_seconds += seconds;
    accuracy = test_accuracy(net, test);
    print(fmt::format("{}: loss {:.4f}, test accuracy {:.4f}, {:.0f} images/s, {:.1f} s", title,
                      loss_sum / static_cast<double>(steps), accuracy, static_cast<double>(images) / seconds, seconds));
    on_all_ranks([&] {
      if (!std::isfinite(loss_sum)) throw std::runtime_error("the loss is no longer finite: lower --lr");
      if (hvd::rank() != 0 || options.checkpoint.empty()) return;
      save_checkpoint(options.checkpoint, net, sgd, epoch + 1);
    });
  }

  const bool agree = weights_agree(net);
  print(fmt::format("result: accuracy={:.4f} images_per_second={:.0f} epochs={} ranks={} checkpoint={}", accuracy,
                    train_seconds > 0 ? static_cast<double>(trained) / train_seconds : 0.0,
                    std::max(options.epochs, epochs_done[0]), hvd::size(),
                    options.checkpoint.empty() ? "none" : options.checkpoint.string()));
  return agree;
}
