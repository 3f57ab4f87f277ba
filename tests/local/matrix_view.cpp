// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/local/matrix_view.hpp"

#include <array>
#include <numeric>

#include "support/catch.hpp"

using namespace gridlops;

TEST_CASE("A view addresses columns one stride apart", "[matrix_view]") {
  std::array<double, 20> data;
  std::iota(data.begin(), data.end(), 0.0);
  const MatrixView<double> A(data.data(), 3, 4, 5);
  CHECK(A(2, 3) == 17);
  CHECK(A.column(2) == data.data() + 10);
  CHECK(A.size() == 12);

  const MatrixView<const double> B = A.block({1, 2}, {1, 3});
  CHECK((B.rows == 2 && B.cols == 3 && B.stride == 5));
  CHECK(B(0, 0) == 6);
  CHECK(B(1, 2) == 17);
  CHECK(A.row_block({2, 1})(0, 3) == 17);
  CHECK(A.col_block({3, 1})(1, 0) == 16);
}

TEST_CASE("A view is contiguous if its elements are one array", "[matrix_view]") {
  std::array<float, 12> data{};
  CHECK(MatrixView<float>(data.data(), 3, 4).contiguous());
  CHECK_FALSE(MatrixView<float>(data.data(), 2, 4, 3).contiguous());
  CHECK(MatrixView<float>(data.data(), 2, 1, 3).contiguous());
  CHECK(MatrixView<float>(data.data(), 0, 4, 3).contiguous());
}

TEST_CASE("An empty block does not point outside its array", "[matrix_view]") {
  std::array<double, 6> data{};
  const MatrixView<double> A(data.data(), 2, 3);
  CHECK(A.block({2, 0}, {0, 3}).data == data.data());
  CHECK(A.block({0, 2}, {3, 0}).data == data.data());
  CHECK(A.col_block({3, 0}).empty());
  CHECK(MatrixView<double>().empty());
  CHECK(MatrixView<double>().block({0, 0}, {0, 0}).data == nullptr);
}
