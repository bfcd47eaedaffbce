#include <gtest/gtest.h>

#include <hvd/error.h>
#include <hvd/tensor.h>
#include <limits>

namespace hvd {
namespace {

TEST(Shape, CountsElementsOfScalarsEmptyAndLargeTensors) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ((Shape{1, 0, 2}).elements(), 0);
  EXPECT_EQ((Shape{1 << 20, 1 << 20, 5}).elements(), std::int64_t{5} << 40);
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2, 3]");
  EXPECT_EQ(Shape().to_string(), "[]");
}

TEST(Shape, RefusesWhatCannotBeATensor) {
  EXPECT_THROW((Shape{2, -1}), InvalidArgumentError);
  EXPECT_THROW((Shape{std::numeric_limits<std::int64_t>::max(), 2}), InvalidArgumentError);
  EXPECT_THROW((Shape{0, std::numeric_limits<std::int64_t>::max(), 2}), InvalidArgumentError);
  EXPECT_THROW(Shape(std::vector<std::int64_t>(17, 1)), InvalidArgumentError);
  EXPECT_NO_THROW(Shape(std::vector<std::int64_t>(16, 1)));
}

TEST(Shape, ChangesItsRows) {
  EXPECT_EQ((Shape{2, 3}).with_rows(7), (Shape{7, 3}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(TensorView, TakesSpansAsOneDimensionalTensorsOrWithAShape) {
  std::vector<float> values(6);
  const TensorView flat{std::span<float>(values)};
  EXPECT_EQ(flat.shape(), (Shape{6}));
  EXPECT_EQ(flat.dtype(), DataType::f32);
  EXPECT_EQ(flat.bytes(), 24U);
  const std::span<float> span(values);
  const TensorView matrix(span, Shape{2, 3});
  EXPECT_EQ(describe(matrix.dtype(), matrix.shape()), "float32[2, 3]");
  EXPECT_THROW(static_cast<void>(TensorView(span, Shape{2, 2})), InvalidArgumentError);
  const ConstTensorView constant = matrix;
  EXPECT_EQ(constant.data(), values.data());
}

TEST(Tensor, OwnsMemoryEvenWhenEmptyAndChecksItsElementType) {
  Tensor tensor(Shape{0, 3}, DataType::i64);
  EXPECT_NE(tensor.data(), nullptr);
  EXPECT_TRUE(tensor.values<std::int64_t>().empty());
  EXPECT_THROW(static_cast<void>(tensor.values<float>()), InvalidArgumentError);
}

TEST(Failure, IsThrownAsItsType) {
  EXPECT_THROW(throw_failure({ErrorCode::mismatch, "x"}), MismatchError);
  EXPECT_THROW(throw_failure({ErrorCode::stalled, "x"}), StallError);
  EXPECT_THROW(throw_failure({ErrorCode::rank_lost, "x"}), RankLostError);
  EXPECT_THROW(throw_failure({ErrorCode::shut_down, "x"}), ShutDownError);
  EXPECT_THROW(throw_failure({ErrorCode::duplicate_name, "x"}), DuplicateNameError);
  EXPECT_THROW(throw_failure({ErrorCode::not_initialized, "x"}), NotInitializedError);
  EXPECT_THROW(throw_failure({ErrorCode::invalid_argument, "x"}), InvalidArgumentError);
  EXPECT_THROW(throw_failure({ErrorCode::internal, "x"}), InternalError);
}

}  // namespace
}  // namespace hvd
