// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

// Arithmetic for solvers with many right-hand sides at once, where each column has scalars of its own:
//
//   ColumnSums<T> sums(B.grid());
//   A.apply(1, p, 0, q);
//   const auto [pq, rr] = sums(dot(p, q), norm2(r));  // one reduction, for any number of columns and terms
//   const ColumnScalars alpha = ratio(rr, pq);
//   update(axpy(alpha, p, x), axpy(-alpha, q, r));    // x += α p, r −= α q in one sweep
//
// docs/examples/steepest_descent.cpp is a complete solver.

/// One real number for each column of a matrix, in double precision, the same on all ranks. A value.
/// Reasons: docs/decisions/0004-solver-scalars.md.
class GRIDLOPS_EXPORT ColumnScalars {
 public:
  ColumnScalars() = default;
  explicit ColumnScalars(Index columns, double value = 0)
      : values_(static_cast<std::size_t>(columns), value) {}
  explicit ColumnScalars(std::vector<double> values) : values_(std::move(values)) {}

  Index size() const { return static_cast<Index>(values_.size()); }
  double& operator[](Index column) { return values_[static_cast<std::size_t>(column)]; }
  double operator[](Index column) const { return values_[static_cast<std::size_t>(column)]; }
  const std::vector<double>& values() const { return values_; }
  std::vector<double>& values() { return values_; }

 private:
  std::vector<double> values_;
};

/// An operand of column arithmetic: one number for each column, or one for all. A view of the object from
/// which it is made.
class GRIDLOPS_EXPORT ColumnOperand {
 public:
  ColumnOperand(const ColumnScalars& each) : each_(each.values().data()), size_(each.size()) {}
  ColumnOperand(double all) : all_(all) {}

  bool is_constant() const { return size_ < 0; }
  /// The number of columns; negative for one number that applies to all.
  Index size() const { return size_; }
  double operator[](Index column) const { return size_ < 0 ? all_ : each_[column]; }

 private:
  const double* each_ = nullptr;
  Index size_ = -1;
  double all_ = 0;
};

// These compute entry by entry. They throw ShapeError if two operands have different numbers of columns.
GRIDLOPS_EXPORT ColumnScalars operator+(ColumnOperand a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars operator-(ColumnOperand a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars operator*(ColumnOperand a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars operator/(ColumnOperand a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars operator-(const ColumnScalars& a);
GRIDLOPS_EXPORT ColumnScalars& operator+=(ColumnScalars& a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars& operator*=(ColumnScalars& a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars sqrt(const ColumnScalars& a);
GRIDLOPS_EXPORT ColumnScalars abs(const ColumnScalars& a);
GRIDLOPS_EXPORT ColumnScalars hypot(ColumnOperand a, ColumnOperand b);
/// The larger (smaller) of a and b; a where b is NaN.
GRIDLOPS_EXPORT ColumnScalars max(ColumnOperand a, ColumnOperand b);
GRIDLOPS_EXPORT ColumnScalars min(ColumnOperand a, ColumnOperand b);
/// a/b; 0 where b is 0.
GRIDLOPS_EXPORT ColumnScalars ratio(ColumnOperand a, ColumnOperand b);
/// The largest entry; NaN if any entry is NaN; 0 if there are no columns.
GRIDLOPS_EXPORT double largest(const ColumnScalars& a);

/// X diag(factor), as a term of a sum.
template <Scalar T>
struct ScaledColumns {
  ColumnOperand factor;
  const ConstDistMatrix<T>& matrix;
};

template <Scalar T>
ScaledColumns<T> operator*(ColumnOperand factor, const ConstDistMatrix<T>& X) {
  return {factor, X};
}

// These are not collective. On a GPU the work is queued, not finished, on return. They throw ShapeError, on
// all ranks, unless both matrices have the same layout and there is one factor per column.

/// Y ← Y ± X diag(α). With a constant α of 0 nothing is read.
template <Scalar T>
GRIDLOPS_EXPORT void operator+=(DistMatrix<T>& Y, ScaledColumns<T> X);
template <Scalar T>
GRIDLOPS_EXPORT void operator-=(DistMatrix<T>& Y, ScaledColumns<T> X);
template <Scalar T>
void operator+=(DistMatrix<T>& Y, const ConstDistMatrix<T>& X) {
  Y += 1.0 * X;
}
template <Scalar T>
void operator-=(DistMatrix<T>& Y, const ConstDistMatrix<T>& X) {
  Y -= 1.0 * X;
}
/// X ← X diag(α).
template <Scalar T>
GRIDLOPS_EXPORT void operator*=(DistMatrix<T>& X, ColumnOperand alpha);

/// A change of Y's columns that update() will make.
template <Scalar T>
struct [[nodiscard]] ColumnUpdate {
  UpdateKind kind;
  ColumnOperand factor;
  const ConstDistMatrix<T>& X;  // Y itself, if it is scaled
  DistMatrix<T>& Y;
};

/// Y ← Y + X diag(α). With a constant α of 0 nothing is read.
template <Scalar T>
ColumnUpdate<T> axpy(ColumnOperand alpha, const ConstDistMatrix<T>& X, DistMatrix<T>& Y) {
  return {UpdateKind::axpy, alpha, X, Y};
}
/// Y ← X + Y diag(β). Where β is 0 the old Y is not read.
template <Scalar T>
ColumnUpdate<T> xpby(const ConstDistMatrix<T>& X, ColumnOperand beta, DistMatrix<T>& Y) {
  return {UpdateKind::xpby, beta, X, Y};
}
/// Y ← Y diag(α).
template <Scalar T>
ColumnUpdate<T> scale(ColumnOperand alpha, DistMatrix<T>& Y) {
  return {UpdateKind::scale, alpha, Y, Y};
}

/// Makes the changes, as if one after the other, with the bits that they have alone, but in one sweep over
/// the rows: a GPU launches one kernel for up to four, and what two of them read or write passes through the
/// memory once. All matrices are on one grid, and those of different updates are the same or apart.
template <Scalar T>
GRIDLOPS_EXPORT void update(std::span<const ColumnUpdate<T>> updates);
template <Scalar T, class... More>
void update(const ColumnUpdate<T>& first, const More&... more) {
  const std::initializer_list<ColumnUpdate<T>> all{first, more...};
  update(std::span<const ColumnUpdate<T>>(all.begin(), all.size()));
}

/// Every element of column j ← its threshold with tⱼ ≥ 0.
template <Scalar T>
GRIDLOPS_EXPORT void threshold(Threshold kind, ColumnOperand t, DistMatrix<T>& X);

/// A sum over all rows, one number for each column, that a reduction will compute.
template <Scalar T>
struct ColumnSum {
  enum class Kind { norm2, dot, distance2, penalty };
  Kind kind;
  const ConstDistMatrix<T>& X;
  const ConstDistMatrix<T>& Y;
  DistMatrix<T>* difference = nullptr;
  Threshold threshold = Threshold::soft;
};

/// ‖xⱼ‖².
template <Scalar T>
ColumnSum<T> norm2(const ConstDistMatrix<T>& X) {
  return {ColumnSum<T>::Kind::norm2, X, X};
}
/// Re xⱼᴴ yⱼ.
template <Scalar T>
ColumnSum<T> dot(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
  return {ColumnSum<T>::Kind::dot, X, Y};
}
/// ‖xⱼ − yⱼ‖². Also sets D ← X − Y, when the reduction computes this term.
template <Scalar T>
ColumnSum<T> distance2(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y, DistMatrix<T>& D) {
  return {ColumnSum<T>::Kind::distance2, X, Y, &D};
}
/// The penalty of xⱼ whose proximal map is the threshold.
template <Scalar T>
ColumnSum<T> penalty(Threshold kind, const ConstDistMatrix<T>& X) {
  return {ColumnSum<T>::Kind::penalty, X, X, nullptr, kind};
}

/// Sums over all rows in double precision; all sums of one call take one all_reduce over the grid. All ranks
/// get the same bits, so they take the same decisions.
template <Scalar T>
class GRIDLOPS_EXPORT ColumnSums {
 public:
  explicit ColumnSums(std::shared_ptr<const ProcessGrid> grid, ReductionOrder order = ReductionOrder::any)
      : grid_(std::move(grid)), order_(order) {}

  /// Returns the sums: const auto [qq, pp] = sums(norm2(q), norm2(p)). Collective over the grid; idle ranks
  /// get zeros. Throws ShapeError, on all ranks before anything is sent, unless all matrices have the same
  /// columns, and the two matrices of a dot have the same layout. If one rank has too little memory, all
  /// ranks throw OutOfMemory.
  template <class... Terms>
  std::array<ColumnScalars, sizeof...(Terms)> operator()(const Terms&... terms) {
    std::vector<double> none;
    return with(none, terms...);
  }
  /// Returns the sums, and replaces each of these numbers by its sum over the ranks. Every rank passes
  /// equally many.
  template <class... Terms>
  std::array<ColumnScalars, sizeof...(Terms)> with(std::vector<double>& numbers, const Terms&... terms) {
    std::array<ColumnScalars, sizeof...(Terms)> sums;
    const std::initializer_list<ColumnSum<T>> list{terms...};
    reduce({list.begin(), list.size()}, sums, numbers);
    return sums;
  }

  /// Takes any number of terms.
  void reduce(std::span<const ColumnSum<T>> terms, std::span<ColumnScalars> sums,
              std::vector<double>& numbers);

 private:
  void plan(const ColumnSum<T>& term, double* sums);
  void compute();

  std::shared_ptr<const ProcessGrid> grid_;
  ReductionOrder order_;
  std::vector<Accumulator<T>> local_;  // this rank's sums
  std::vector<double> values_;         // to be reduced
  std::vector<ColumnTerm<T>> terms_;   // that are planned, and not yet computed
};

}  // namespace gridlops
