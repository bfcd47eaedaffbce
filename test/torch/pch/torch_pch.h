#include <gmock/gmock.h>
#include <torch/torch.h>
