// SPDX-License-Identifier: BSD-3-Clause
#include <array>
#include <limits>
#include <vector>

#include "local/products/narrow_matrix.hpp"
#include "local/tiles/kernel_set.hpp"
#include "support/catch.hpp"
#include "support/padded_matrix.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Matrices side by side, of these numbers of columns, with small integers, which no precision rounds.
template <Scalar T>
class SideBySide {
 public:
  SideBySide(const SideBySide&) = delete;
  SideBySide& operator=(const SideBySide&) = delete;
  SideBySide(Index rows, const std::vector<Index>& cols, const KernelSet& set) : rows_(rows) {
    Index before = 0;
    for (std::size_t k = 0; k < cols.size(); ++k) {
      const auto precision = static_cast<Precision>(k % (static_cast<std::size_t>(own_precision<T>) + 1));
      const PaddedMatrix<T> A{rows, cols[k], 0,
                              [&](Index i, Index j) { return small_integer<T>(1, i, before + j); }};
      const NarrowMatrix<T> shape{nullptr, rows, cols[k], precision};
      std::vector<std::byte>& bytes = bytes_.emplace_back(static_cast<std::size_t>(shape.bytes()));
      std::vector<std::byte> columns(bytes.size());
      narrow<T>(A.view(), precision, columns.data());
      const NarrowMatrix<T> all{columns.data(), rows, cols[k], precision};
      const Index half = cols[k] / 2;
      const Index strip = narrow_strip<T>(rows, set);
      put_narrow(all.columns({half, cols[k] - half}), strip, half, cols[k], bytes.data());
      put_narrow(all.columns({0, half}), strip, 0, cols[k], bytes.data());
      matrices_.push_back({bytes.data(), rows, cols[k], precision});
      for (Index j = 0; j < cols[k]; ++j) places_.push_back(end_ + j);
      end_ = NarrowMatrix<T>::aligned(end_ + cols[k]);
      before += cols[k];
    }
  }

  std::span<const NarrowMatrix<T>> matrices() const { return matrices_; }
  Index rows() const { return rows_; }
  Index cols() const { return static_cast<Index>(places_.size()); }
  Index padded_cols() const { return end_; }
  /// The row of X or Y that belongs to column j.
  Index place(Index j) const { return places_[static_cast<std::size_t>(j)]; }

 private:
  Index rows_, end_ = 0;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<NarrowMatrix<T>> matrices_;
  std::vector<Index> places_;
};

template <Scalar T>
void check_product(Op op, T alpha, const SideBySide<T>& A, Index columns, Index padding, T beta,
                   const KernelSet& set) {
  const bool forward = op == Op::none;
  const Index rows = A.rows(), cols = A.cols(), in = forward ? cols : rows, out = forward ? rows : cols;
  const auto all = integers<T>(1, rows, cols, 0), dense_X = integers<T>(2, in, columns, 0),
             old = integers<T>(3, out, columns, 0);
  auto X = nothing<T>(forward ? A.padded_cols() : rows, columns, padding),
       Y = nothing<T>(forward ? rows : A.padded_cols(), columns, padding);
  for (Index j = 0; j < columns; ++j) {
    for (Index i = 0; i < in; ++i) X.view()(forward ? A.place(i) : i, j) = dense_X.view()(i, j);
    for (Index i = 0; i < out && beta != T(0); ++i) Y.view()(forward ? i : A.place(i), j) = old.view()(i, j);
  }
  narrow_gemm<T>(op, alpha, A.matrices(), X.view(), beta, Y.view(), set);
  const auto expected = reference_product(op, alpha, all.view().data, rows, cols, dense_X.view().data,
                                          columns, beta, old.view().data);
  const PaddedMatrix<T> found{out, columns, 0,
                              [&](Index i, Index j) { return Y.view()(forward ? i : A.place(i), j); }};
  CAPTURE(set.text, op, rows, cols, columns, padding, alpha, beta);
  found.check([&](Index i, Index j) { return expected[static_cast<std::size_t>(i + j * out)]; });
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("products with narrow matrices of integers, side by side, are exact", "[narrow_gemm]",
                        Scalars) {
  using T = TestType;
  struct Shape {
    Index rows;
    std::vector<Index> cols;
  };
  const std::vector<Shape> shapes{{256, {13, 8, 21}}, {255, {0, 0, 5}},   {37, {100, 0, 65}},
                                  {1, {1, 1, 1}},     {2101, {9, 66, 3}}, {48, {16, 64, 16, 3}},
                                  {24, {128}},        {31, {0, 0, 0}}};
  for (const Shape& shape : shapes) {
    for (const KernelSet& set : kernel_sets()) {
      const SideBySide<T> A(shape.rows, shape.cols, set);
      for (const Op op : {Op::none, Op::transpose, Op::adjoint}) {
        for (const Index columns : {1, 2, 5, 12}) check_product(op, T(1), A, columns, 0, T(0), set);
        check_product(op, general<T>(), A, 3, 5, general<T>(), set);
        check_product(op, T(1), A, 0, 0, T(0), set);
        if (shape.rows == 48) check_product(op, general<T>(), A, 150, 1, T(1), set);
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE("what widen() returns is the number that narrow() rounded to", "[narrow_gemm]",
                        Scalars) {
  using T = TestType;
  const auto A = fractions<T>(1, 77, 3, 2);
  for (int p = 0; p <= static_cast<int>(own_precision<T>); ++p) {
    const auto precision = static_cast<Precision>(p);
    const NarrowMatrix<T> shape{nullptr, 77, 3, precision};
    std::vector<std::byte> bytes(static_cast<std::size_t>(shape.bytes()));
    narrow<T>(A.view(), precision, bytes.data());
    auto wide = nothing<T>(77, 3, 0);
    widen<T>({bytes.data(), 77, 3, precision}, wide.view().data);
    const auto found = [&](Index i, Index j) { return A.view()(i, j); };
    // Both parts are below 1.
    wide.check(found, is_complex<T> ? 1.5 * roundoff(precision) : roundoff(precision));
    for (const KernelSet& set : kernel_sets()) {  // products by the identity
      const PaddedMatrix<T> identity{3, 3, NarrowMatrix<T>::alignment - 3,
                                     [](Index i, Index j) { return T(i == j ? 1 : 0); }};
      const MatrixView<const T> padded(identity.view().data, NarrowMatrix<T>::alignment, 3);
      auto Y = nothing<T>(77, 3, 0);
      std::vector<std::byte> arranged(bytes.size());
      put_narrow<T>({bytes.data(), 77, 3, precision}, narrow_strip<T>(77, set), 0, 3, arranged.data());
      const NarrowMatrix<T> stored{arranged.data(), 77, 3, precision};
      narrow_gemm<T>(Op::none, T(1), {&stored, 1}, padded, T(0), Y.view(), set);
      CAPTURE(set.text, p);
      Y.check([&](Index i, Index j) { return wide.view()(i, j); });
    }
  }
}
