// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "gridlops/solve/ridge.hpp"
#include "solve/ridge/prediction_scores.hpp"
#include "solve/ridge/ridge_models.hpp"

namespace gridlops {

/// Some columns of B, all rows of which this rank has, in the order of FoldRows: their scores and
/// coefficients. Where a function is collective over the grid, ranks without columns take part.
template <Scalar T>
class RidgeBatch {
  using Wide = Accumulator<T>;

 public:
  /// most: the most columns that this rank will have. Takes all memory; throws OutOfMemory on this rank
  /// alone.
  RidgeBatch(Communicator& comm, const std::shared_ptr<Backend>& backend, const FoldRows<T>& rows,
             const std::vector<RidgeModel<T>>& models, RidgeScore score, const ModelOptions& options,
             bool with_coefficients, Index most);

  /// Takes columns of B, in A's order of rows, and sums AᴴB of each fold (collective over the grid).
  void load(MatrixView<const T> B);

  /// The scores of a model that predicts: of damping d and column j at d + j·dampings; NaN where there is
  /// none.
  void score(const RidgeModel<T>& model, double* scores);

  /// X ← the coefficients by a model of all rows, with a damping, in the units of the rows, for each column;
  /// sets what columns say of them (collective over the grid).
  void fit(const RidgeModel<T>& model, std::span<const double> alphas, MatrixView<T> X, RidgeColumn* columns);

  /// The bytes of memory that one column takes.
  static Index bytes_of_column(Index rows, Index cols, Index folds, bool of_data, bool is_narrow,
                               bool with_coefficients);

 private:
  /// Residuals are computed for this many columns at a time.
  static constexpr Index together = 256;

  /// Matrices that are computed in T, or in the precision of sums.
  template <Scalar S>
  struct Work {
    Buffer<S> products{};  ///< Aᴴ Y of each fold, or of all rows
    Buffer<S> sum{};       ///< of these over a training set; and what is multiplied by bases
    Buffer<S> components{};
    Buffer<S> rows{}, data{};  ///< converted, some at a time
  };
  template <Scalar S>
  Work<S>& work() {
    if constexpr (std::is_same_v<S, Wide>) {
      return wide_;
    } else {
      return narrow_;
    }
  }
  /// use.template operator()<S>() for the precision S of the components.
  template <class Use>
  void in_precision(const Use& use) {
    if constexpr (!std::is_same_v<T, Wide>)
      if (is_narrow_) return use.template operator()<T>();
    use.template operator()<Wide>();
  }

  bool of_data() const { return rows_.of_data(); }
  /// The longest column that bases are multiplied with, or give.
  Index longest() const { return std::max(rows_.rows(), rows_.cols()); }
  MatrixView<T> data() const { return Y_.matrix(rows_.rows(), columns_); }
  /// The mean of column j over the training rows of a model.
  Wide mean_of(const RidgeModel<T>& model, Index j) const;
  /// The parts into which Aᴴ Y is cut: folds, or 1, or none.
  Index parts() const { return of_data() ? (with_coefficients_ ? 1 : 0) : rows_.folds(); }

  template <Scalar S>
  void allocate(const std::shared_ptr<Backend>& backend);
  template <Scalar S>
  void sum_products();
  template <Scalar S>
  MatrixView<S> centred_products(const RidgeModel<T>& model);
  template <Scalar S>
  MatrixView<S> components(const RidgeModel<T>& model);
  template <Scalar S>
  void score_columns(const RidgeModel<T>& model, double* scores);
  void score_left_out(const RidgeModel<T>& model, double* scores);
  MatrixView<T> tested(const RidgeModel<T>& model, Range some);
  MatrixView<T> rotated(const RidgeModel<T>& model, MatrixView<T> Y);
  template <Scalar S>
  void predict(const RidgeModel<T>& model, MatrixView<const S> W, double alpha, MatrixView<const T> data,
               MatrixView<T> E);
  double mean_leverage(const RidgeModel<T>& model, double alpha) const;
  double divide_residuals(const RidgeModel<T>& model, Index d, MatrixView<T> E) const;
  template <Scalar S>
  void expand(const RidgeModel<T>& model, MatrixView<const S> weighted, T beta, MatrixView<T> X);
  void find_gradient(const RidgeModel<T>& model, std::span<const double> alphas, MatrixView<const T> X);
  bool judge_columns(const RidgeModel<T>& model, std::span<const double> alphas, MatrixView<const T> X,
                     RidgeColumn* columns) const;

  /// y − A X of one column, with the centred A and y.
  struct Residual {
    Wide shift{};  ///< what the means have in it
    Wide sum{};
    SquareSum squares{};
  };

  Communicator& comm_;
  const FoldRows<T>& rows_;
  const RidgeScore score_;
  const ModelOptions& options_;
  const bool with_coefficients_, is_narrow_;
  const Index most_;

  Index columns_ = 0;
  std::vector<Wide> references_;         // the mean of each column of B, or 0
  std::vector<int> powers_;              // what is kept is 2^power (B − mean)
  std::vector<Wide> sums_;               // of it, over the rows of each fold
  std::vector<double> reference_norms_;  // of the gradients where x = 0
  std::vector<Residual> residuals_of_columns_;
  std::vector<double> weights_;
  std::vector<TestedColumn<T>> tested_columns_;
  Buffer<T> Y_, tested_, rotated_, residuals_, weighted_, gradient_;
  Buffer<T> dual_, dual_step_;  // of data, u with X = S²Aᴴu, and its last change, or what it lacks
  Buffer<Wide> left_out_;
  Work<T> narrow_;
  Work<Wide> wide_;
};

}  // namespace gridlops
