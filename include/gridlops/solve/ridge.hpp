// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops {

/// How a ridge chooses a damping for each right-hand side.
enum class RidgeValidation {
  none,   ///< it does not: each right-hand side is given one
  folds,  ///< every fold of rows is predicted from the other rows; scores are means over the folds
  /// Every row is predicted from all others, by one decomposition of all rows: exactly, but for
  /// `standardize`, whose deviations are those of all rows, as in scikit-learn's pipeline of StandardScaler
  /// and RidgeCV. One fold for each row, with negative_mse, leaves the row out there, too.
  leave_one_out,
  gcv  ///< generalised cross-validation: the same, with the mean leverage in the place of each
};

/// The score of a prediction p of the data y of a fold. The largest is the best.
enum class RidgeScore {
  r2,           ///< 1 − ‖y − p‖²/‖y − ȳ‖²; if y is constant 1 where p = y, else 0
  correlation,  ///< between y and p; 0 if one of them is constant
  negative_mse  ///< −‖y − p‖²/rows
};

/// The names in options and reports: "none", "folds", "leave-one-out", "gcv"; "r2", "correlation",
/// "negative-mse".
GRIDLOPS_EXPORT const char* name_of(RidgeValidation validation);
GRIDLOPS_EXPORT const char* name_of(RidgeScore score);

struct RidgeOptions {
  /// D², by which ‖x‖² is multiplied, as scikit-learn's alpha. With RidgeValidation::none one for all columns
  /// of B, or one for each; otherwise those to choose from, in any order.
  std::vector<double> alphas{1.0};
  RidgeValidation validation = RidgeValidation::folds;
  /// The fold of each row of A, any number ≥ 0; rows with a number < 0 are in every training set.
  std::vector<Index> folds{};
  /// The weight of each row of A and B, not negative: ‖b − β − Ax‖² is the sum of weights times squares, and
  /// so are means, deviations and scores, so that a whole number is that many equal rows of the same fold.
  /// Leave-one-out leaves a row out whatever its weight. Empty: 1 for each.
  std::vector<double> weights{};
  RidgeScore score = RidgeScore::r2;
  /// Columns of B with the same number get the damping with the best mean score; empty: each gets its own.
  std::vector<Index> groups{};
  /// Takes the largest damping whose score is at most one standard error of the folds below the best.
  bool one_standard_error = false;
  bool intercept = true;     ///< fits b ≈ Ax + β, where β is not damped
  bool standardize = false;  ///< divides each column of A by its standard deviation in the training rows;
                             ///< constant columns are not divided
  Index batch = 0;           ///< the most columns of B that all ranks together work on at a time; 0: chosen
};

/// The result for one column of B.
struct RidgeColumn {
  double alpha = 0;                  ///< the chosen D²
  Index chosen = 0;                  ///< its number among the dampings
  double score = 0;                  ///< its score; NaN with RidgeValidation::none
  std::complex<double> intercept{};  ///< β, of the coefficients
  /// The verdict on the coefficients, from norms recomputed from A and B: `converged` if ‖Aᴴ(b − β − Ax) −
  /// D²x‖ ≤ T‖Aᴴ(b − mean of b)‖ with the tolerance of cgls(). The norms are those of the centred and
  /// standardised problem, with rows times the roots of their weights. Without coefficients, `user_stop`.
  StopReason reason = StopReason::user_stop;
  double residual_norm = 0;         ///< ‖b − β − Ax‖
  double normal_residual_norm = 0;  ///< ‖Aᴴ(b − β − Ax) − D²x‖
};

/// The same on all members of the grid, and empty on idle ranks.
struct RidgeReport {
  Index folds = 0;                   ///< their number
  std::vector<RidgeColumn> columns;  ///< of B
  std::vector<double> scores;        ///< of damping d and column j at d + j·dampings; or none
  /// Of PreparedRidge alone: of fold f at f + folds·(d + j·dampings). Without folds there is one.
  std::vector<double> fold_scores;
  /// With leave-one-out the first row of A that decides its own prediction, but for rounding: it alone has
  /// some feature. Dampings where a row does have no score (NaN), and are not chosen. −1: there is none.
  Index deciding_row = -1;
  Index at_smallest = 0, at_largest = 0;  ///< columns that chose an end of more than one damping
};

/// Fits every column b of B by coefficients x that minimise ‖b − β − Ax‖² + D²‖x‖², with a damping that is
/// chosen for each by cross-validation (collective over the grid; nothing happens on idle ranks).
///
/// A is m × n, one row for each observation: a matrix that never moves, made by matrix_mult() with block or
/// stationary_a, by stream_matrix() or compress(). B is m × r, in any layout on the same grid. X, n × r in
/// any layout on this grid whose columns are cut as those of B, gets the coefficients for the chosen
/// dampings; null: only scores and choices are wanted.
///
/// Rows of A are read twice, and kept whole, in T, each on one rank. If m ≥ n, every rank sums AᴴA of its
/// rows in each fold, in double precision; a training set has the sum of the others, so nothing is
/// subtracted. If m < n, or m ≤ n + 1 and validation is by all rows, it is AAᴴ. A mean of all rows is
/// subtracted while they are read, and that of a training set is a correction of what is left. Each training
/// set has one eigendecomposition V Λ Vᴴ, by one rank, which serves all dampings and columns; it has at most
/// 30000 vectors. QR of A V, for the rows A of a fold, gives Q R, so that errors of predictions are ‖Qᴴb − R
/// (Λ + D²)⁻¹ Vᴴ Aᴴ b‖ with a triangle R of at most n rows. Ranks share the columns of B, and all work on
/// them is local, but for rows of A, which are broadcast. Elements of single precision are multiplied in it
/// where rounding changes predictions by less than 10⁻⁵ of the data, otherwise in double precision until the
/// predictions.
///
/// Reasons: docs/decisions/0067-ridge.md.
///
/// Eigenvalues with λ + D² ≤ max(m, n)·ε·λ_max, ε that of double precision, count as 0: then x is the
/// shortest. In λ_max counts what a row or feature has before the mean of its training set is subtracted.
/// Throws ShapeError and UsageError, on all ranks, if options do not fit A, B or each other; InputError if A
/// or B have NaN or infinity, with the place; OutOfMemory if a rank lacks memory.
///
///   RidgeOptions options{.alphas = {1, 10, 100}, .folds = contiguous_folds(A->rows(), 5)};
///   const RidgeReport report = ridge(*A, B, options, &X);
template <Scalar T>
GRIDLOPS_EXPORT RidgeReport ridge(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                  const RidgeOptions& options, DistMatrix<T>* X = nullptr);

/// A ridge that has read A and decomposed its training sets, and fits any number of columns, some at a time:
/// then B and X may be larger than memory.
///
///   PreparedRidge<float> ridge(*A, options, true, all_columns);
///   for (…) report = ridge.fit(some_of_B, &some_of_X);
template <Scalar T>
class GRIDLOPS_EXPORT PreparedRidge {
 public:
  /// Reads A, which is not needed afterwards (collective over its grid). Arguments and errors are those of
  /// ridge(); `columns` is how many there are in all, and `groups` in the options must be empty: see
  /// SharedDampings.
  PreparedRidge(const LinearOperator<T>& A, const RidgeOptions& options, bool with_coefficients,
                Index columns);
  ~PreparedRidge();
  PreparedRidge(PreparedRidge&&) noexcept;
  PreparedRidge& operator=(PreparedRidge&&) noexcept;

  /// The most columns that are worked on at a time. More than these in B are so in batches. 0 on idle ranks.
  Index columns_at_a_time() const;
  /// How many scores fold_scores has of each column and damping; 0 on idle ranks, and without validation.
  Index folds_scored() const;

  /// Scores or fits some columns, as ridge() does (collective over the grid). Without `chosen` a damping is
  /// chosen for each; otherwise it has the number of one for each, and nothing is scored. Throws what ridge()
  /// throws.
  RidgeReport fit(const ConstDistMatrix<T>& B, DistMatrix<T>* X, std::span<const Index> chosen = {});

 private:
  class Run;
  std::shared_ptr<const ProcessGrid> grid_;
  std::unique_ptr<Run> run_;
};

/// Chooses a damping for columns that share it: the one with the best mean of their scores.
class GRIDLOPS_EXPORT SharedDampings {
 public:
  /// options: those of the ridge, but for their groups.
  explicit SharedDampings(const RidgeOptions& options);
  /// Adds a column of a group, with its part of RidgeReport::fold_scores.
  void add(Index group, std::span<const double> fold_scores);
  /// The number of a group's damping. Where none has a score, the largest.
  Index chosen(Index group) const;

 private:
  std::vector<double> alphas_;
  bool one_standard_error_;
  struct Group {
    Index columns = 0;
    std::vector<double> sums{};
  };
  std::map<Index, Group> groups_;
};

/// Labels of rows in this many folds whose sizes differ by at most one, larger folds first: contiguous, as
/// scikit-learn's KFold has them, or row i in fold i modulo their number.
GRIDLOPS_EXPORT std::vector<Index> contiguous_folds(Index rows, Index folds);
GRIDLOPS_EXPORT std::vector<Index> interleaved_folds(Index rows, Index folds);

/// The most columns that ridge() works on at a time on all ranks. Not collective. Throws as ridge_bytes().
GRIDLOPS_EXPORT Index ridge_columns_at_a_time(Index rows, Index cols, Index nrhs, ScalarType type,
                                              const RidgeOptions& options, bool with_coefficients, int ranks);

/// Returns the bytes of memory that ridge() takes on a rank, at most, besides A, B and X. Not collective.
/// Throws UsageError or ShapeError if options do not fit these shapes.
GRIDLOPS_EXPORT Index ridge_bytes(Index rows, Index cols, Index nrhs, ScalarType type,
                                  const RidgeOptions& options, bool with_coefficients, int ranks);

}  // namespace gridlops
