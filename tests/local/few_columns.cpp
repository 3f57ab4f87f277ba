// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <cstring>

#include "support/catch.hpp"
#include "support/padded_matrix.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index rows, cols, columns, padding;
};

/// Tiles have 2 to 48 real rows and 8 or 16 columns, 2048 or 4096 rows are read together, and groups have up
/// to 24 real columns.
const std::vector<Shape> shapes{{64, 1, 1, 0},   {64, 24, 6, 3},  {65, 25, 7, 1},   {100, 16, 3, 0},
                                {128, 49, 2, 5}, {191, 50, 5, 0}, {513, 17, 4, 2},  {1027, 24, 13, 0},
                                {2049, 7, 1, 1}, {2111, 3, 6, 0}, {4200, 30, 2, 0}, {70, 100, 16, 0},
                                {1, 1, 1, 0},    {3, 70, 2, 1},   {0, 5, 2, 0},     {5, 0, 3, 1},
                                {4, 4, 0, 0},    {30, 16, 25, 0}, {48, 8, 64, 2}};

/// As PaddedMatrix::check(), for op(A) X with A rows × cols.
template <Scalar T>
void check_product(Op op, T alpha, const Shape& shape, T beta, const KernelSet& set) {
  const auto [rows, cols, columns, padding] = shape;
  const Index in = op == Op::none ? cols : rows, out = op == Op::none ? rows : cols;
  const auto A = integers<T>(1, rows, cols, padding), X = integers<T>(2, in, columns, padding);
  const auto dense_A = integers<T>(1, rows, cols, 0), dense_X = integers<T>(2, in, columns, 0);
  const auto old = integers<T>(3, out, columns, 0);
  auto Y = beta == T(0) ? nothing<T>(out, columns, padding) : integers<T>(3, out, columns, padding);
  few_columns_gemm(op, alpha, A.view(), X.view(), beta, Y.view(), set, false);
  const auto expected = reference_product(op, alpha, dense_A.view().data, rows, cols, dense_X.view().data,
                                          columns, beta, old.view().data);
  CAPTURE(set.text, op, rows, cols, columns, padding, alpha, beta);
  Y.check([&expected, height = out](Index i, Index j) {
    return expected[static_cast<std::size_t>(i + j * height)];
  });
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("products with few columns of integers are exact", "[few_columns]", Scalars) {
  using T = TestType;
  for (const KernelSet& set : kernel_sets()) {
    for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
      for (const Shape& shape : shapes) check_product(op, T(1), shape, T(0), set);
      for (Index columns = 1; columns <= 27; ++columns)
        check_product(op, general<T>(), {77, 19, columns, 1}, general<T>(), set);
      check_product(op, general<T>(), shapes[3], T(1), set);
      check_product(op, T(-1), shapes[2], T(0), set);
      for (const Shape& empty : {Shape{5, 0, 3, 1}, Shape{0, 5, 3, 1}})
        check_product(op, general<T>(), empty, general<T>(), set);
    }
    for (const Op op : {Op::none, Op::transpose, Op::adjoint})
      for (const Index rows : {1, 2, 3, 15, 16, 17, 31}) check_product(op, T(1), {rows, 5, 3, 2}, T(0), set);
  }
}

TEMPLATE_LIST_TEST_CASE("products with few columns round like sums of as many terms", "[few_columns]",
                        Scalars) {
  using T = TestType;
  const Index rows = 1100, cols = 90, columns = 5;
  for (const KernelSet& set : kernel_sets()) {
    for (const Op op : {Op::none, Op::adjoint}) {
      const Index in = op == Op::none ? cols : rows, out = op == Op::none ? rows : cols;
      const auto A = fractions<T>(1, rows, cols, 0), X = fractions<T>(2, in, columns, 0);
      auto Y = nothing<T>(out, columns, 0);
      few_columns_gemm(op, T(1), A.view(), X.view(), T(0), Y.view(), set, false);
      const auto expected = reference_product(op, T(1), A.view().data, rows, cols, X.view().data, columns);
      // Terms of at most 2, each rounded at most `in` times, in fact much less often and with random signs.
      const double tolerance = 2 * static_cast<double>(in) * std::numeric_limits<Real<T>>::epsilon();
      CAPTURE(set.text, op);
      Y.check([&](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * out)]; }, tolerance);
    }
  }
}

TEMPLATE_LIST_TEST_CASE(
    "a column of a column-stable product with few columns has the same bits whatever its neighbours",
    "[few_columns]", Scalars) {
  using T = TestType;
  const Index rows = 1153, cols = 53, columns = 29;
  for (const KernelSet& set : kernel_sets()) {
    for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
      const Index in = op == Op::none ? cols : rows, out = op == Op::none ? rows : cols;
      const auto A = fractions<T>(1, rows, cols, 1), X = fractions<T>(2, in, columns, 0);
      auto together = nothing<T>(out, columns, 0), alone = nothing<T>(out, 1, 0);
      few_columns_gemm(op, general<T>(), A.view(), X.view(), T(0), together.view(), set, true);
      Index different = 0;
      for (Index j = 0; j < columns; ++j) {
        few_columns_gemm(op, general<T>(), A.view(), X.view().col_block({j, 1}), T(0), alone.view(), set,
                         true);
        different += std::memcmp(alone.view().data, together.view().column(j),
                                 static_cast<std::size_t>(out) * sizeof(T)) == 0
                         ? 0
                         : 1;
      }
      CAPTURE(set.text, op);
      CHECK(different == 0);
    }
  }
}

TEMPLATE_LIST_TEST_CASE("NaN and infinity stay in their row, column and sign", "[few_columns]", Scalars) {
  using T = TestType;
  const Real<T> infinity = std::numeric_limits<Real<T>>::infinity();
  const Index cols = 6, columns = 3;
  for (const KernelSet& set : kernel_sets()) {
    for (const Index rows : {64, 65, 79, 1100}) {
      for (const Index bad : {Index{0}, rows / 2, rows - 1}) {
        auto A = PaddedMatrix<T>(rows, cols, 3, [](Index, Index) { return T(1); });
        const auto ones = PaddedMatrix<T>(rows, columns, 0, [](Index, Index) { return T(1); });
        A.view()(bad, 2) = quiet_nan<T>();
        A.view()(bad, 4) = T(infinity);
        auto Y = nothing<T>(rows, columns, 0);
        few_columns_gemm(Op::none, T(1), MatrixView<const T>(A.view()), ones.view().row_block({0, cols}),
                         T(0), Y.view(), set, false);
        auto X = nothing<T>(cols, columns, 0);
        few_columns_gemm(Op::transpose, T(1), MatrixView<const T>(A.view()), ones.view(), T(0), X.view(), set,
                         false);
        CAPTURE(set.text, rows, bad);
        for (Index j = 0; j < columns; ++j) {
          for (const Index i : {Index{1}, rows / 3, rows - 2})
            CHECK((i == bad || Y.view()(i, j) == T(Real<T>(cols))));
          CHECK(is_nan(Y.view()(bad, j)));
          for (const Index k : {0, 1, 3, 5}) CHECK(X.view()(k, j) == T(Real<T>(rows)));
          CHECK(is_nan(X.view()(2, j)));
          // A complex infinity times one has a NaN in it.
          if (!is_complex<T>) CHECK(std::real(X.view()(4, j)) == infinity);
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE(
    "NaN in a column of the right factor stays in that column, and alpha of zero reads no A", "[few_columns]",
    Scalars) {
  using T = TestType;
  const Index rows = 67, cols = 29, columns = 11, bad = 6;
  for (const KernelSet& set : kernel_sets()) {
    for (const Op op : {Op::none, Op::adjoint}) {
      const Index in = op == Op::none ? cols : rows, out = op == Op::none ? rows : cols;
      const auto A = integers<T>(1, rows, cols, 2);
      auto X = integers<T>(2, in, columns, 1);
      for (Index k = 0; k < in; ++k) X.view()(k, bad) = quiet_nan<T>();
      auto Y = nothing<T>(out, columns, 0);
      few_columns_gemm(op, T(1), A.view(), MatrixView<const T>(X.view()), T(0), Y.view(), set, false);
      CAPTURE(set.text, op);
      for (Index j = 0; j < columns; ++j)
        for (Index i = 0; i < out; ++i) CHECK(is_nan(Y.view()(i, j)) == (j == bad));
      auto old = integers<T>(3, out, columns, 0);
      few_columns_gemm(op, T(0), A.view(), MatrixView<const T>(X.view()), T(2), old.view(), set, false);
      old.check([](Index i, Index j) { return T(2) * small_integer<T>(3, i, j); });
    }
  }
}
