// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "base/numbers.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// A matrix of the size of a block of right-hand sides, column-major, in host memory. Every rank holds the
/// same matrix and computes the same bits from it. It therefore does not use BLAS, whose rounding may differ
/// between CPUs.
template <Scalar S>
class SmallMatrix {
 public:
  SmallMatrix() = default;
  /// A matrix of zeros.
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

/// The inverse of an upper triangular matrix. Rows whose diagonal element is at most `smallest` are zero in
/// it.
template <Scalar S>
SmallMatrix<S> inverse_upper(const SmallMatrix<S>& R, double smallest = 0);

/// Makes the columns of X orthonormal, given G = XᴴX: X = (X C) R.
template <Scalar S>
struct GramFactors {
  SmallMatrix<S> C, R;
  /// For each column of X C: the column of X that it comes from, and the length that remained of that column
  /// after projection onto the complement of the columns before. Pivoting takes the longest first, so no
  /// element in a row of R is larger than this length, if all have the same unit.
  std::vector<Index> origins;
  std::vector<double> lengths;

  /// Returns the factors of only these columns of X C.
  GramFactors select(const std::vector<Index>& columns) const;
};

/// Factors G by Cholesky's method with diagonal pivoting (Golub, Van Loan: Matrix Computations, §4.2.8). If
/// the remaining length is less than √floors[j] of the length of column j, it is lost in the rounding of G.
/// The factorisation then takes it to be √floors[j], and assumes that the other columns have no component
/// along it, since that would divide rounding by it. The column of X C then comes out shorter than 1, as the
/// Gram matrix of X C shows. Columns of length zero are left out. Pivoting compares lengths in the columns'
/// own units, so that what is short in these comes last, and takes no part of what is long with it if it is
/// left out.
template <Scalar S>
GramFactors<S> factor_gram(const SmallMatrix<S>& G, const std::vector<double>& floors,
                           const std::vector<double>& units);

/// The factorisation P A = Q [R; 0] by Householder reflections, for A with at least as many rows as columns.
/// The permutation P puts the largest rows first. Rows that are much smaller than others thereby keep their
/// digits in Q and in Qᴴ P B (Cox, Higham: Stability of Householder QR factorization for weighted least
/// squares problems, 1998; columns are not pivoted here).
template <Scalar S>
class HouseholderQr {
 public:
  explicit HouseholderQr(const SmallMatrix<S>& A);
  SmallMatrix<S> upper() const;
  /// Qᴴ P B.
  SmallMatrix<S> apply_adjoint(const SmallMatrix<S>& B) const;

 private:
  void reflect(Index k, SmallMatrix<S>& B, Index first_column) const;

  std::vector<Index> order_;   // of A's rows in P A
  SmallMatrix<S> reflected_;   // R on and above the diagonal
  SmallMatrix<S> directions_;  // of the reflections I − 2vvᴴ
};

}  // namespace gridlops
