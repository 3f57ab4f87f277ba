// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/matrix_view.hpp"

namespace gridlops {

/// A matrix of the size of a block of right-hand sides, column-major, in host memory. Every rank has the same
/// one and computes the same bits from it: without BLAS, whose rounding may differ from one CPU to another.
template <Scalar S>
class SmallMatrix {
 public:
  SmallMatrix() = default;
  /// Zero.
  SmallMatrix(Index rows, Index cols)
      : rows_(rows), cols_(cols), values_(static_cast<std::size_t>(rows * cols), S(0)) {}
  static SmallMatrix identity(Index size);

  Index rows() const { return rows_; }
  Index cols() const { return cols_; }
  S& operator()(Index i, Index j) { return values_[at(i + j * rows_)]; }
  const S& operator()(Index i, Index j) const { return values_[at(i + j * rows_)]; }
  S* column(Index j) { return values_.data() + j * rows_; }
  const S* column(Index j) const { return values_.data() + j * rows_; }

  SmallMatrix row_block(Range rows) const;
  double column_norm_squared(Index j) const;

 private:
  Index rows_ = 0, cols_ = 0;
  std::vector<S> values_;
};

template <Scalar S>
SmallMatrix<S> adjoint(const SmallMatrix<S>& A);
template <Scalar S>
SmallMatrix<S> product(const SmallMatrix<S>& A, const SmallMatrix<S>& B);
/// [A; B].
template <Scalar S>
SmallMatrix<S> stacked(const SmallMatrix<S>& A, const SmallMatrix<S>& B);

/// The inverse of an upper triangle; rows of it that a diagonal element of at most `smallest` makes are zero.
template <Scalar S>
SmallMatrix<S> inverse_upper(const SmallMatrix<S>& R, double smallest = 0);

/// How to make the columns of an X orthonormal of which G = XᴴX is known: X = (X C) R.
template <Scalar S>
struct GramFactors {
  SmallMatrix<S> C, R;
  /// Per column of X C: the column of X that it is the rest of, after those before it are taken away, and how
  /// long that rest is. It is the longest rest that there is, so that no element of its row of R is larger.
  std::vector<Index> origins;
  std::vector<double> lengths;

  /// The same with these columns of X C alone.
  GramFactors select(const std::vector<Index>& columns) const;
};

/// By Cholesky's factorisation with diagonal pivoting (Golub, Van Loan: Matrix Computations, §4.2.8). A rest
/// of less than √floor of its column, whose length rounding of G hides, counts as that long: it comes out
/// shorter than 1, to be seen by the Gram matrix of X C. Columns of length zero are left out.
template <Scalar S>
GramFactors<S> factor_gram(const SmallMatrix<S>& G, double floor);

/// A = Q [R; 0] by Householder's reflections, for A with at least as many rows as columns.
template <Scalar S>
class HouseholderQr {
 public:
  explicit HouseholderQr(SmallMatrix<S> A);
  SmallMatrix<S> upper() const;
  /// Qᴴ B.
  SmallMatrix<S> apply_adjoint(SmallMatrix<S> B) const;

 private:
  void reflect(Index k, SmallMatrix<S>& B, Index first_column) const;

  SmallMatrix<S> reflected_;   // R on and above the diagonal
  SmallMatrix<S> directions_;  // of the reflections: I − 2vvᴴ
};

}  // namespace gridlops
