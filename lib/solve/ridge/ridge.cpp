// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/ridge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/hash.hpp"
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "ops/operator/library_operator.hpp"
#include "solve/batches.hpp"
#include "solve/ridge/ridge_batch.hpp"
#include "solve/ridge/ridge_choice.hpp"
#include "solve/ridge/ridge_options.hpp"

namespace gridlops {

namespace {

constexpr const char* where = "ridge";

template <class Number>
std::uint64_t hash_of(const std::vector<Number>& numbers) {
  return hash_of_bytes(numbers.data(), std::ssize(numbers) * Index{sizeof(Number)});
}

void describe(Agreement& agreement, const RidgeOptions& options) {
  agreement.on("the validation", name_of(options.validation));
  agreement.on("the score", name_of(options.score));
  agreement.on("the intercept", options.intercept);
  agreement.on("standardising", options.standardize);
  agreement.on("one standard error", options.one_standard_error);
  agreement.on("the batch", options.batch);
  agreement.on("the dampings", hash_of(options.alphas));
  agreement.on("the folds", hash_of(options.folds));
  agreement.on("the groups", hash_of(options.groups));
  agreement.on("the weights of rows", hash_of(options.weights));
}

template <Scalar T>
void require_rows(const LinearOperator<T>& A) {
  const auto& grid = A.domain().grid;
  require<UsageError>(grid->backend() == nullptr || grid->backend()->memory_space() == MemorySpace::host,
                      where, ": A of ", A.rows(), " x ", A.cols(),
                      " is on GPUs; make the operator on a grid in host memory");
  require<UsageError>(matrix_in_blocks(A) != nullptr, where,
                      ": A has no rows to read; make it by block or stationary-a, on a disk, or compressed");
  require<UsageError>(A.rows() > 0, where, ": A has no rows");
}

/// Throws ShapeError unless B and X fit A of this shape.
template <Scalar T>
void require_columns(const std::shared_ptr<const ProcessGrid>& grid, Index rows, Index cols,
                     const ConstDistMatrix<T>& B, const DistMatrix<T>* X) {
  require<ShapeError>(B.grid() == grid && (X == nullptr || X->grid() == grid), where,
                      ": A, B and X are not on one grid");
  require<ShapeError>(rows == B.rows(), where, ": A has ", rows, " rows, but B has ", B.rows());
  require<ShapeError>(X == nullptr || (X->rows() == cols && X->layout().cols == B.layout().cols), where,
                      ": the coefficients of ", cols, " features and ", B.cols(), " columns are ", cols,
                      " x ", B.cols(), ", with columns cut as those of B, but X is ",
                      X == nullptr ? std::string() : X->layout().describe());
}

/// Throws InputError on all ranks (collective over the grid).
template <Scalar T>
void require_finite_data(const ConstDistMatrix<T>& B) {
  const std::optional<NonFiniteElement> found = find_non_finite(B);
  if (found)
    throw InputError(message("B has ", found->value.imag() == 0 ? found->value.real() : found->value.imag(),
                             " at row ", found->row, ", column ", found->col,
                             " (from 0), so that it cannot be fitted: leave the row or the column out"));
}

/// Counts the columns that chose an end of the range.
void note_ends(RidgeReport& report, const RidgeOptions& options) {
  const auto [least, most] = std::minmax_element(options.alphas.begin(), options.alphas.end());
  report.at_smallest = report.at_largest = 0;
  if (*least == *most) return;
  for (const RidgeColumn& column : report.columns) {
    if (column.alpha == *least) ++report.at_smallest;
    if (column.alpha == *most) ++report.at_largest;
  }
}

}  // namespace

/// On a member of the grid.
template <Scalar T>
class PreparedRidge<T>::Run {
 public:
  Run(const LinearOperator<T>& A, const RidgeOptions& options, bool with_coefficients, Index columns)
      : grid_(A.domain().grid),
        comm_(grid_->comm()),
        options_(options),
        with_coefficients_(with_coefficients),
        columns_(columns),
        folds_(folds_of(A.rows(), options)),
        rows_(*matrix_in_blocks(A), *grid_, A.cols(), folds_.of_row, folds_.all(),
              weights_of(A.rows(), options), options.intercept,
              is_ridge_of_data(A.rows(), A.cols(), predicts_all(options))) {
    model_options_ = {options_.intercept, options_.standardize,
                      options_.validation == RidgeValidation::leave_one_out, predicts_all(options_),
                      options_.alphas};
    for (Index f = 0; f < folds_.predicted(); ++f) wanted_.push_back(f);
    if (with_coefficients || predicts_all(options_)) wanted_.push_back(RidgeModel<T>::all);
  }

  /// Collective.
  void prepare() {
    rows_.read();
    const int unit = options_.standardize ? 0 : 2 * rows_.power();
    for (double& alpha : model_options_.alphas) alpha = std::ldexp(alpha, unit);
    at_a_time_ = columns_;
    if (wanted_.empty()) return;
    models_ = make_models<T>(comm_, grid_->backend(), rows_, wanted_, model_options_);
    note_deciding_row();
    attempt(comm_, [&] { take_memory(); });
  }

  Index rows() const { return rows_.rows(); }
  Index cols() const { return rows_.cols(); }
  bool with_coefficients() const { return with_coefficients_; }
  Index score_folds() const {
    return options_.validation == RidgeValidation::none ? 0 : std::max<Index>(folds_.predicted(), 1);
  }
  const RidgeOptions& options() const { return options_; }
  Index columns_at_a_time() const { return at_a_time_; }

  /// chosen: the dampings of the columns, which then are not scored; empty: they are (collective).
  RidgeReport fit(const ConstDistMatrix<T>& B, DistMatrix<T>* X, std::span<const Index> chosen) {
    const bool validates = chosen.empty() && score_folds() > 0;
    RidgeReport report;
    attempt(comm_, [&] {
      report.folds = folds_.predicted();
      report.deciding_row = deciding_row_;
      report.columns.resize(at(B.cols()));
      mine_.clear();
      mine_.reserve(at(B.cols()));
      if (!validates) return take_choices(report, chosen);
      report.fold_scores.assign(at(B.cols() * dampings() * score_folds()), 0.0);
      report.scores.assign(at(B.cols() * dampings()), std::numeric_limits<double>::quiet_NaN());
    });
    if (models_.empty() || (!validates && X == nullptr)) return report;
    std::vector<ColumnBatch> batches;
    attempt(comm_, [&] { batches = column_batches(B.layout().cols.partition, at_a_time_); });
    for (const ColumnBatch& some : batches) work_on(some, B, X, validates, report);
    if (validates) {
      comm_.all_reduce(report.fold_scores, ReduceOp::sum);
      attempt(comm_, [&] {
        for (Index j = 0; j < B.cols(); ++j) choose(report, j);
      });
      note_ends(report, options_);
    }
    if (X != nullptr) share_columns(report);
    return report;
  }

 private:
  Index dampings() const { return std::ssize(options_.alphas); }
  std::span<double> scores_of(RidgeReport& report, Index column) const {
    const Index count = dampings() * score_folds();
    return std::span(report.fold_scores).subspan(at(column * count), at(count));
  }

  void take_choices(RidgeReport& report, std::span<const Index> chosen) const {
    for (std::size_t j = 0; j < report.columns.size(); ++j) {
      RidgeColumn& column = report.columns[j];
      column.chosen = chosen.empty() ? 0 : chosen[j];
      column.alpha = options_.alphas[at(column.chosen)];
      column.score = std::numeric_limits<double>::quiet_NaN();
    }
  }

  /// Takes the memory of a batch of columns.
  void take_memory() {
    const Index of_column =
        RidgeBatch<T>::bytes_of_column(rows_.rows(), rows_.cols(), folds_.all(), rows_.of_data(),
                                       models_.front().is_narrow(), with_coefficients_);
    at_a_time_ = ridge_batch(columns_, of_column, options_.batch, comm_.size());
    // A batch may have a column from each part of B.
    const Index most = balanced_part(std::max<Index>(at_a_time_, comm_.size()), comm_.size(), 0).size;
    batch_.emplace(comm_, grid_->backend(), rows_, models_, options_.score, model_options_,
                   with_coefficients_, most);
    alphas_.resize(at(most));
    found_.resize(at(most));
    if (score_folds() > 0) scores_.resize(at(most * dampings()));
  }

  /// Scores or fits the columns of a batch, or both.
  void work_on(const ColumnBatch& some, const ConstDistMatrix<T>& B, DistMatrix<T>* all_X, bool scores,
               RidgeReport& report) {
    std::vector<Index> numbers;
    DistMatrix<T> Y, X;
    attempt(comm_, [&] {
      numbers = some.numbers_in(B.layout().cols.partition);
      const Cut columns = Cut::balanced(Axis::all, std::ssize(numbers), *grid_);
      Y = DistMatrix<T>(grid_, {Cut::uncut(rows_.rows()), columns});
      if (all_X != nullptr) X = DistMatrix<T>(grid_, {Cut::uncut(rows_.cols()), columns});
    });
    redistribute<T>(B.column_slice(some.first, some.sizes), Y);
    const Range mine = Y.local_col_range();
    const std::span<const Index> my_numbers = std::span(numbers).subspan(at(mine.begin), at(mine.size));
    batch_->load(Y.local());
    if (scores) score(my_numbers, report);
    if (all_X == nullptr) return;
    // A column of its own damping is fitted at once, so that A^H B is not made again.
    if (scores)
      attempt(comm_, [&] {
        for (const Index j : my_numbers) choose(report, j);
      });
    for (std::size_t k = 0; k < my_numbers.size(); ++k)
      alphas_[k] = model_options_.alphas[at(report.columns[at(my_numbers[k])].chosen)];
    batch_->fit(models_.back(), std::span(alphas_).first(my_numbers.size()), X.local(), found_.data());
    for (std::size_t k = 0; k < my_numbers.size(); ++k) {
      RidgeColumn& column = report.columns[at(my_numbers[k])];
      column.intercept = found_[k].intercept;
      column.reason = found_[k].reason;
      column.residual_norm = found_[k].residual_norm;
      column.normal_residual_norm = found_[k].normal_residual_norm;
      mine_.push_back(my_numbers[k]);
    }
    DistMatrix<T> of_batch = all_X->column_slice(some.first, some.sizes);
    redistribute<T>(X, of_batch);
  }
  void score(std::span<const Index> numbers, RidgeReport& report) {
    Index f = 0;
    for (const RidgeModel<T>& model : models_) {
      if (model.tested.size == 0) continue;
      batch_->score(model, scores_.data());
      for (std::size_t k = 0; k < numbers.size(); ++k)
        for (Index d = 0; d < dampings(); ++d)
          scores_of(report, numbers[k])[at(f + d * score_folds())] = scores_[k * at(dampings()) + at(d)];
      ++f;
    }
  }

  /// Chooses for a column whose scores are known.
  void choose(RidgeReport& report, Index j) const {
    const std::span<const double> scores = scores_of(report, j);
    const auto folds = at(score_folds());
    for (std::size_t d = 0; d < options_.alphas.size(); ++d) {
      double sum = 0;
      for (std::size_t f = 0; f < folds; ++f) sum += scores[f + d * folds];
      report.scores[d + at(j * dampings())] = sum / static_cast<double>(folds);
    }
    SharedDampings alone(options_);
    alone.add(0, scores);
    RidgeColumn& column = report.columns[at(j)];
    column.chosen = alone.chosen(0);
    column.alpha = options_.alphas[at(column.chosen)];
    column.score = report.scores[at(column.chosen + j * dampings())];
  }
  void note_deciding_row() {
    const RidgeModel<T>& model = models_.back();
    if (rows_.of_data() || !model_options_.by_rows) return;
    for (std::size_t k = 0; k < model.leverage.size(); ++k) {
      if (1 - model.leverage[k] > RidgeModel<T>::least_left) continue;
      const Index row = rows_.numbers()[k % at(rows_.rows())];
      if (deciding_row_ < 0 || row < deciding_row_) deciding_row_ = row;
    }
  }
  /// Tells all ranks of the columns that others have fitted.
  void share_columns(RidgeReport& report) {
    constexpr Index figures = 5;
    std::vector<double> sums;
    attempt(comm_, [&] { sums.assign(at(figures) * report.columns.size(), 0.0); });
    for (const Index j : mine_) {
      const RidgeColumn& column = report.columns[at(j)];
      double* const of_column = &sums[at(figures * j)];
      of_column[0] = column.intercept.real();
      of_column[1] = column.intercept.imag();
      of_column[2] = static_cast<double>(column.reason);
      of_column[3] = column.residual_norm;
      of_column[4] = column.normal_residual_norm;
    }
    comm_.all_reduce(sums, ReduceOp::sum);
    for (std::size_t j = 0; j < report.columns.size(); ++j) {
      const double* const of_column = &sums[at(figures) * j];
      RidgeColumn& column = report.columns[j];
      column.intercept = {of_column[0], of_column[1]};
      column.reason = static_cast<StopReason>(static_cast<int>(of_column[2]));
      column.residual_norm = of_column[3];
      column.normal_residual_norm = of_column[4];
    }
  }

  const std::shared_ptr<const ProcessGrid> grid_;
  Communicator& comm_;
  const RidgeOptions options_;
  const bool with_coefficients_;
  const Index columns_;  // in all
  const Folds folds_;
  FoldRows<T> rows_;
  ModelOptions model_options_;
  std::vector<Index> wanted_;  // the folds of the models
  std::vector<RidgeModel<T>> models_;
  Index at_a_time_ = 0, deciding_row_ = -1;
  std::optional<RidgeBatch<T>> batch_;
  std::vector<double> alphas_, scores_;  // of the columns of a batch
  std::vector<RidgeColumn> found_;
  std::vector<Index> mine_;  // the columns that this rank has fitted
};

template <Scalar T>
PreparedRidge<T>::PreparedRidge(const LinearOperator<T>& A, const RidgeOptions& options,
                                bool with_coefficients, Index columns)
    : grid_(A.domain().grid) {
  agree(grid_, where, [&](Agreement& agreement) {
    describe_operator(agreement, A);
    describe(agreement, options);
    agreement.on("coefficients", with_coefficients);
    agreement.on("the columns", columns);
    require_rows(A);
    require<UsageError>(options.groups.empty(), where,
                        ": groups of columns share dampings, which a batch of columns cannot choose");
    require_options(options, A.rows(), A.cols(), columns);
  });
  if (!grid_->is_member()) return;
  const TraceRegion region("ridge");
  attempt(grid_->comm(), [&] { run_ = std::make_unique<Run>(A, options, with_coefficients, columns); });
  run_->prepare();
}
template <Scalar T>
PreparedRidge<T>::~PreparedRidge() = default;
template <Scalar T>
PreparedRidge<T>::PreparedRidge(PreparedRidge&&) noexcept = default;
template <Scalar T>
PreparedRidge<T>& PreparedRidge<T>::operator=(PreparedRidge&&) noexcept = default;

template <Scalar T>
Index PreparedRidge<T>::columns_at_a_time() const {
  return run_ == nullptr ? 0 : run_->columns_at_a_time();
}
template <Scalar T>
Index PreparedRidge<T>::folds_scored() const {
  return run_ == nullptr ? 0 : run_->score_folds();
}

template <Scalar T>
RidgeReport PreparedRidge<T>::fit(const ConstDistMatrix<T>& B, DistMatrix<T>* X,
                                  std::span<const Index> chosen) {
  if (!grid_->is_member()) return {};
  agree(grid_, where, [&](Agreement& agreement) {
    describe_matrix(agreement, "B", B);
    agreement.on("coefficients", X != nullptr);
    if (X != nullptr) describe_matrix(agreement, "X", *X);
    agreement.on("the chosen dampings",
                 hash_of_bytes(chosen.data(), std::ssize(chosen) * Index{sizeof(Index)}));
    require_columns(grid_, run_->rows(), run_->cols(), B, X);
    require<UsageError>(X == nullptr || run_->with_coefficients(), where,
                        ": it was prepared for scores alone, and cannot fit coefficients");
    const Index dampings = std::ssize(run_->options().alphas);
    require<ShapeError>(
        (chosen.empty() && (run_->score_folds() > 0 || dampings == 1)) || std::ssize(chosen) == B.cols(),
        where, ": B has ", B.cols(), " columns, but ", chosen.size(), " of ", dampings,
        " dampings are chosen");
    for (const Index d : chosen)
      require<UsageError>(d >= 0 && d < dampings, where, ": there is no damping ", d, " of ", dampings);
  });
  const TraceRegion region("ridge");
  require_finite_data(B);
  return run_->fit(B, X, chosen);
}

template <Scalar T>
RidgeReport ridge(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const RidgeOptions& options,
                  DistMatrix<T>* X) {
  const auto& grid = A.domain().grid;
  agree(grid, where, [&](Agreement& agreement) {
    describe_operator(agreement, A);
    describe_matrix(agreement, "B", B);
    describe(agreement, options);
    agreement.on("coefficients", X != nullptr);
    if (X != nullptr) describe_matrix(agreement, "X", *X);
    require_rows(A);
    require_columns(grid, A.rows(), A.cols(), B, X);
    require_options(options, A.rows(), A.cols(), B.cols());
  });
  if (!grid->is_member()) return {};
  require_finite_data(B);
  RidgeOptions each = options;
  each.groups.clear();
  PreparedRidge<T> prepared(A, each, X != nullptr, B.cols());
  std::vector<Index> chosen;
  RidgeReport report;
  if (options.validation == RidgeValidation::none) {
    if (options.alphas.size() > 1)
      for (Index j = 0; j < B.cols(); ++j) chosen.push_back(j);
    report = prepared.fit(B, X, chosen);
  } else if (options.groups.empty()) {
    report = prepared.fit(B, X);
  } else {
    report = prepared.fit(B, nullptr);
    SharedDampings shared(options);
    const std::size_t count = B.cols() == 0 ? 0 : report.fold_scores.size() / at(B.cols());
    for (Index j = 0; j < B.cols(); ++j)
      shared.add(options.groups[at(j)], std::span(report.fold_scores).subspan(at(j) * count, count));
    for (const Index group : options.groups) chosen.push_back(shared.chosen(group));
    if (X != nullptr) report.columns = prepared.fit(B, X, chosen).columns;
    for (std::size_t j = 0; j < chosen.size(); ++j) {
      RidgeColumn& column = report.columns[j];
      column.chosen = chosen[j];
      column.alpha = options.alphas[at(chosen[j])];
      column.score = report.scores[j * options.alphas.size() + at(chosen[j])];
    }
    note_ends(report, options);
  }
  report.fold_scores = {};
  return report;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template class PreparedRidge<T>;                                                                     \
  template RidgeReport ridge(const LinearOperator<T>&, const ConstDistMatrix<T>&, const RidgeOptions&, \
                             DistMatrix<T>*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
