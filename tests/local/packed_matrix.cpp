// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/packed_matrix.hpp"

#include <cstring>

#include "support/catch.hpp"
#include "support/metered_backend.hpp"
#include "support/padded_matrix.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <Scalar T>
void check(const PaddedMatrix<T>& found, const std::vector<T>& expected, Index rows) {
  found.check([&](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * rows)]; });
}

struct Shape {
  Index rows, cols, columns;
};
/// Strips have 2 to 48 rows and lie 16 together, tiles have 64 columns, groups up to 24 real columns.
constexpr Shape shapes[] = {{1, 1, 1},    {3, 2, 2},   {8, 4, 3},    {31, 5, 1},    {32, 9, 4},
                            {33, 17, 6},  {64, 8, 7},  {129, 23, 2}, {200, 3, 13},  {70, 530, 4},
                            {801, 65, 5}, {24, 64, 8}, {48, 128, 9}, {50, 129, 64}, {97, 63, 33}};

template <Scalar T>
void check_products(const Shape& shape, const KernelSet& set, bool column_stable) {
  const auto [rows, cols, columns] = shape;
  CAPTURE(set.text, rows, cols, columns, column_stable);
  const auto dense_A = integers<T>(1, rows, cols, 0);
  const auto P = integers<T>(2, cols, columns, 1), dense_P = integers<T>(2, cols, columns, 0);
  const auto R = integers<T>(3, rows, columns, 1), dense_R = integers<T>(3, rows, columns, 0);
  auto given = integers<T>(1, rows, cols, 3);
  Index given_up = 0;
  const PackedMatrix<T> strips(
      std::make_shared<MeteredBackend>(), given.view(), set, column_stable, [&](Index taken) {
        for (; given_up < taken; ++given_up)
          std::fill_n(given.view().column(given_up), given.view().rows, quiet_nan<T>());
      });
  CHECK(given_up == cols);
  const auto product = [&, m = rows, n = cols, r = columns](Op op, const T* X) {
    return reference_product(op, T(1), dense_A.view().data, m, n, X, r);
  };
  const std::vector<T> AP = product(Op::none, dense_P.view().data);
  std::vector<T> both = product(Op::adjoint, dense_R.view().data);
  const std::vector<T> second = product(Op::adjoint, AP.data());
  both.insert(both.end(), second.begin(), second.end());

  const auto halves = [c = columns](PaddedMatrix<T>& W) {
    return std::pair(W.view().col_block({0, c}), W.view().col_block({c, c}));
  };
  auto Q = nothing<T>(rows, columns, 1), W = nothing<T>(cols, 2 * columns, 1);
  const auto [U, V] = halves(W);
  strips.one_pass(P.view(), R.view(), Q.view(), U, V);
  check(Q, AP, rows);
  check(W, both, cols);
  // Rows may come later, in portions that are not those of strips, and from elsewhere. Here they come in
  // three portions.
  auto late_Q = nothing<T>(rows, columns, 0), late_W = nothing<T>(cols, 2 * columns, 0);
  const auto [late_U, late_V] = halves(late_W);
  Index summed = 0;
  strips.one_pass(P.view(), R.view(), late_Q.view(), late_U, late_V, [&, m = rows](Index computed) {
    const Index end = computed == m ? std::min(summed + 5, m) : std::max(summed, computed - 20);
    for (; summed < end; ++summed)
      for (Index j = 0; j < late_Q.view().cols; ++j) late_Q.view()(summed, j) *= T(3);
    return summed;
  });
  for (std::size_t k = both.size() / 2; k < both.size(); ++k) both[k] *= T(3);
  check(late_W, both, cols);
  for (const Op op : {Op::transpose, Op::adjoint}) {
    auto X = nothing<T>(cols, columns, 1);
    strips.multiply(op, T(1), R.view(), T(0), X.view());
    check(X, product(op, dense_R.view().data), cols);
  }
  auto X = integers<T>(5, cols, columns, 1);
  const auto old_X = integers<T>(5, cols, columns, 0);
  strips.multiply(Op::adjoint, general<T>(), R.view(), T(-3), X.view());
  check(X,
        reference_product(Op::adjoint, general<T>(), dense_A.view().data, rows, cols, dense_R.view().data,
                          columns, T(-3), old_X.view().data),
        cols);
  auto Y = integers<T>(4, rows, columns, 2);
  const auto old = integers<T>(4, rows, columns, 0);
  strips.multiply(Op::none, T(2), P.view(), T(-3), Y.view());
  check(Y,
        reference_product(Op::none, T(2), dense_A.view().data, rows, cols, dense_P.view().data, columns,
                          T(-3), old.view().data),
        rows);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("products with a packed matrix are exact on integers", "[packed]", Scalars) {
  for (const KernelSet& set : kernel_sets())
    for (const Shape& shape : shapes)
      for (const bool column_stable : {false, true}) check_products<TestType>(shape, set, column_stable);
}

TEMPLATE_LIST_TEST_CASE("column-stable products have the same bits packed, in columns, and in one pass",
                        "[packed]", Scalars) {
  using T = TestType;
  const auto same = [](const PaddedMatrix<T>& a, const MatrixView<const T>& b) {
    return std::memcmp(a.view().data, b.data, static_cast<std::size_t>(b.rows * b.cols) * sizeof(T)) == 0;
  };
  const Index rows = 131, cols = 77;
  for (const KernelSet& set : kernel_sets()) {
    const auto A = fractions<T>(1, rows, cols, 1);
    const PackedMatrix<T> packed(std::make_shared<MeteredBackend>(), A.view(), set, true);
    for (const Index columns : {1, 3, 7, 20}) {
      CAPTURE(set.text, columns);
      const auto P = fractions<T>(2, cols, columns, 0), R = fractions<T>(3, rows, columns, 0);
      auto AP = nothing<T>(rows, columns, 0), AhR = nothing<T>(cols, columns, 0);
      few_columns_gemm(Op::none, T(1), A.view(), P.view(), T(0), AP.view(), set, true);
      few_columns_gemm(Op::adjoint, T(1), A.view(), R.view(), T(0), AhR.view(), set, true);
      auto Y = nothing<T>(rows, columns, 0), X = nothing<T>(cols, columns, 0);
      packed.multiply(Op::none, T(1), P.view(), T(0), Y.view());
      packed.multiply(Op::adjoint, T(1), R.view(), T(0), X.view());
      CHECK(same(AP, Y.view()));
      CHECK(same(AhR, X.view()));
      auto Q = nothing<T>(rows, columns, 0), U = nothing<T>(cols, columns, 0),
           V = nothing<T>(cols, columns, 0);
      packed.one_pass(P.view(), R.view(), Q.view(), U.view(), V.view());
      CHECK(same(AP, Q.view()));
      CHECK(same(AhR, U.view()));
    }
  }
}
