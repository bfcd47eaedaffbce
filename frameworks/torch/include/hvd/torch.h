#pragma once

// Data-parallel training with libtorch. Inside namespace hvd, libtorch itself is ::torch.
#include <torch/torch.h>

#include <hvd/torch/functions.h>
#include <hvd/torch/learning_rate.h>
#include <hvd/torch/optimizer.h>
#include <hvd/torch/sampler.h>
#include <hvd/torch/tensor.h>
