// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "gridlops/local/buffer.hpp"
#include "solve/ridge/fold_rows.hpp"

namespace gridlops {

/// The decomposition of one training set, which serves all dampings and all columns of B; the same on all
/// ranks. A is that of FoldRows, without the mean of the training rows times the roots of weights, and S
/// divides its columns by their standard deviation.
///
/// Of features, V Λ Vᴴ = (A S)ᴴ(A S) of the training rows, and the basis is S V. Components are basisᴴ Aᴴ b.
/// Of data, V Λ Vᴴ = (A S)(A S)ᴴ, the basis is V, with a row for each training row, and components are basisᴴ
/// b. If rows are centred, the vector of the roots of weights, whose λ is 0 but for rounding, is not in the
/// basis.
///
/// Predictions of the tested rows are Z (Λ + D²)⁻¹ times the components. If a model of data predicts the rows
/// that it is trained with, the basis takes the place of Z: their residuals from a prediction by all others
/// are V w Vᴴb, divided by the diagonal of V w Vᴴ, with w = (Λ + D²)⁻¹.
template <Scalar T>
struct RidgeModel {
  static constexpr Index all = -1;
  Index fold = all;   ///< the fold that it predicts; all: it is trained with all rows, and predicts them
  Range tested{};     ///< the places of rows that it predicts; none if only its coefficients are wanted
  Index trained = 0;  ///< the number of training rows
  double weight = 0;  ///< the sum of their weights
  std::vector<Accumulator<T>> mean{};  ///< of the training rows; 0 if they are not centred
  std::vector<double> scale{};         ///< the diagonal of S
  std::vector<double> values{};        ///< Λ, in ascending order
  double uncentred = 0;                ///< the largest square of a row or feature before means are subtracted
  double least = 0;                    ///< λ + D² is 0 but for rounding, unless it is larger
  Buffer<Accumulator<T>> basis{};
  Buffer<T> narrow_basis{};  ///< in its place, if T has digits enough
  /// Q R = Z of the tested rows, with R upper trapezoidal. If rows are wanted one by one, R is Z, and Q is
  /// not.
  Buffer<T> Q{}, R{};
  Index rows_of_R = 0;
  Index rows_of_basis = 0;
  bool is_rotated = false;
  std::vector<T> ones{};  ///< Qᴴ times a column of the roots of weights
  /// For leave-one-out, of each row and damping: its share in its own prediction or, of data, the diagonal of
  /// V w Vᴴ.
  std::vector<double> leverage{};

  /// Of a row that decides its prediction, as far as rounding tells, no more is left in its residual.
  static constexpr double least_left = 1e-10;

  Index size() const { return std::ssize(values); }
  bool is_narrow() const { return narrow_basis.size() > 0; }
  MatrixView<const T> rotation() const { return Q.matrix(tested.size, rows_of_R); }
  MatrixView<const T> triangle() const { return R.matrix(rows_of_R, size()); }
  template <Scalar S>
  MatrixView<const S> basis_in() const {
    if constexpr (std::is_same_v<S, Accumulator<T>>) {
      return basis.matrix(rows_of_basis, size());
    } else {
      return narrow_basis.matrix(rows_of_basis, size());
    }
  }
  /// 1/(λ + D²), or 0.
  double inverse(Index k, double alpha) const {
    const double sum = values[at(k)] + alpha;
    return sum > least ? 1 / sum : 0;
  }
  /// 1/(λ + D²) in proportion to that of the smallest λ; sums that are rounding count alike.
  double residual_weight(Index k, double alpha) const {
    const double smallest = std::max(values.front() + alpha, least),
                 sum = std::max(values[at(k)] + alpha, least);
    return sum > 0 ? smallest / sum : 1;
  }
};

/// The facts that all models of a ridge have in common.
struct ModelOptions {
  bool centred = true, standardized = false;
  bool by_rows = false;          ///< the rows that a model of all rows predicts are wanted one by one
  bool predicts = false;         ///< a model of all rows predicts them
  std::vector<double> alphas{};  ///< in the units of the rows times S
};

/// Makes a model of each of these folds, or of all rows (collective over the grid). Ranks make them side by
/// side, by LAPACK, and send them to all. Throws OutOfMemory and InputError on all ranks.
template <Scalar T>
std::vector<RidgeModel<T>> make_models(Communicator& comm, const std::shared_ptr<Backend>& backend,
                                       FoldRows<T>& rows, const std::vector<Index>& folds,
                                       const ModelOptions& options);

}  // namespace gridlops
