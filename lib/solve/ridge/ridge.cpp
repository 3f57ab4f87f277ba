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

template <Scalar T>
void describe(Agreement& agreement, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
              const RidgeOptions& options, const DistMatrix<T>* X) {
  describe_operator(agreement, A);
  describe_matrix(agreement, "B", B);
  agreement.on("the validation", name_of(options.validation));
  agreement.on("the score", name_of(options.score));
  agreement.on("the intercept", options.intercept);
  agreement.on("standardising", options.standardize);
  agreement.on("one standard error", options.one_standard_error);
  agreement.on("the batch", options.batch);
  agreement.on("the dampings", hash_of(options.alphas));
  agreement.on("the folds", hash_of(options.folds));
  agreement.on("the groups", hash_of(options.groups));
  agreement.on("coefficients", X != nullptr);
  if (X != nullptr) describe_matrix(agreement, "X", *X);
}

template <Scalar T>
void require_fit(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const RidgeOptions& options,
                 const DistMatrix<T>* X) {
  const auto& grid = A.domain().grid;
  require<UsageError>(grid->backend() == nullptr || grid->backend()->memory_space() == MemorySpace::host,
                      where, ": A of ", A.rows(), " x ", A.cols(),
                      " is on GPUs; make the operator on a grid in host memory");
  require<UsageError>(matrix_in_blocks(A) != nullptr, where,
                      ": A has no rows to read; make it by block or stationary-a, on a disk, or compressed");
  require<ShapeError>(B.grid() == grid && (X == nullptr || X->grid() == grid), where,
                      ": A, B and X are not on one grid");
  require<ShapeError>(A.rows() == B.rows(), where, ": A has ", A.rows(), " rows, but B has ", B.rows());
  require<UsageError>(A.rows() > 0, where, ": A has no rows");
  require<ShapeError>(X == nullptr || (X->rows() == A.cols() && X->layout().cols == B.layout().cols), where,
                      ": the coefficients of ", A.cols(), " features and ", B.cols(), " columns are ",
                      A.cols(), " x ", B.cols(), ", with columns cut as those of B, but X is ",
                      X == nullptr ? std::string() : X->layout().describe());
  require_options(options, A.rows(), A.cols(), B.cols());
}

/// One ridge, on a member of the grid.
template <Scalar T>
class RidgeRun {
 public:
  RidgeRun(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const RidgeOptions& options,
           DistMatrix<T>* X)
      : grid_(A.domain().grid),
        comm_(grid_->comm()),
        B_(B),
        options_(options),
        X_(X),
        folds_(folds_of(A.rows(), options)),
        rows_(*matrix_in_blocks(A), *grid_, A.cols(), folds_.of_row, folds_.all(), options.intercept,
              is_ridge_of_data(A.rows(), A.cols(), predicts_all(options))) {
    report_.folds = folds_.predicted();
    report_.columns.resize(at(B.cols()));
    model_options_ = {options_.intercept, options_.standardize,
                      options_.validation == RidgeValidation::leave_one_out, predicts_all(options_),
                      options_.alphas};
    for (Index f = 0; f < folds_.predicted(); ++f) wanted_.push_back(f);
    if (X_ != nullptr || predicts_all(options_)) wanted_.push_back(RidgeModel<T>::all);
    if (score_folds() == 0) return;
    fold_scores_.assign(at(B_.cols() * dampings() * score_folds()), 0.0);
    report_.scores.assign(at(B_.cols() * dampings()), std::numeric_limits<double>::quiet_NaN());
  }

  RidgeReport run() {
    rows_.read();
    require_finite_data();
    const int unit = options_.standardize ? 0 : 2 * rows_.power();
    for (double& alpha : model_options_.alphas) alpha = std::ldexp(alpha, unit);
    const bool validates = score_folds() > 0;
    if (!validates) choose_given();
    if (wanted_.empty()) return std::move(report_);
    models_ = make_models<T>(comm_, grid_->backend(), rows_, wanted_, model_options_);
    note_deciding_row();
    make_batches();
    // A column of its own damping is fitted at once, so that A^H B is not made again.
    const bool at_once = X_ != nullptr && (options_.groups.empty() || !validates);
    if (validates || at_once)
      for (const ColumnBatch& some : batches_) work_on(some, validates, at_once);
    if (validates) {
      comm_.all_reduce(fold_scores_, ReduceOp::sum);
      attempt(comm_, [&] { choose(all_columns()); });
      note_ends();
      if (X_ != nullptr && !at_once)
        for (const ColumnBatch& some : batches_) work_on(some, false, true);
    }
    if (X_ != nullptr) share_columns();
    return std::move(report_);
  }

 private:
  Index dampings() const { return std::ssize(options_.alphas); }
  Index score_folds() const {
    return options_.validation == RidgeValidation::none ? 0 : std::max<Index>(folds_.predicted(), 1);
  }
  double* scores_of(Index column) { return fold_scores_.data() + column * dampings() * score_folds(); }

  void require_finite_data() const {
    const std::optional<NonFiniteElement> found = find_non_finite(B_);
    if (found)
      throw InputError(message("B has ", found->value.imag() == 0 ? found->value.real() : found->value.imag(),
                               " at row ", found->row, ", column ", found->col,
                               " (from 0), so that it cannot be fitted: leave the row or the column out"));
  }
  void choose_given() {
    for (Index j = 0; j < B_.cols(); ++j) {
      RidgeColumn& column = report_.columns[at(j)];
      column.chosen = dampings() == 1 ? 0 : j;
      column.alpha = options_.alphas[at(column.chosen)];
      column.score = std::numeric_limits<double>::quiet_NaN();
    }
  }
  std::vector<Index> all_columns() const {
    std::vector<Index> all;
    for (Index j = 0; j < B_.cols(); ++j) all.push_back(j);
    return all;
  }

  /// Divides the columns, and takes the memory of a batch of them.
  void make_batches() {
    attempt(comm_, [&] {
      const Index of_column =
          RidgeBatch<T>::bytes_of_column(rows_.rows(), rows_.cols(), folds_.all(), rows_.of_data(),
                                         models_.front().is_narrow(), X_ != nullptr);
      batches_ = column_batches(B_.layout().cols.partition,
                                ridge_batch(B_.cols(), of_column, options_.batch, comm_.size()));
      Index most = 0;
      for (const ColumnBatch& some : batches_)
        most = std::max(most, balanced_part(some.sizes.total(), comm_.size(), 0).size);
      batch_.emplace(comm_, grid_->backend(), rows_, models_, options_.score, model_options_, X_ != nullptr,
                     most);
      mine_.reserve(at(B_.cols()));
      alphas_.resize(at(most));
      found_.resize(at(most));
      scores_.resize(at(most * dampings()));
    });
  }

  /// Scores or fits the columns of a batch, or both.
  void work_on(const ColumnBatch& some, bool scores, bool fits) {
    std::vector<Index> numbers;
    DistMatrix<T> Y, X;
    attempt(comm_, [&] {
      numbers = some.numbers_in(B_.layout().cols.partition);
      const Cut columns = Cut::balanced(Axis::all, std::ssize(numbers), *grid_);
      Y = DistMatrix<T>(grid_, {Cut::uncut(rows_.rows()), columns});
      if (fits) X = DistMatrix<T>(grid_, {Cut::uncut(rows_.cols()), columns});
    });
    redistribute<T>(B_.column_slice(some.first, some.sizes), Y);
    const Range mine = Y.local_col_range();
    const std::span<const Index> my_numbers = std::span(numbers).subspan(at(mine.begin), at(mine.size));
    batch_->load(Y.local());
    if (scores) score(my_numbers);
    if (!fits) return;
    if (scores) attempt(comm_, [&] { choose(my_numbers); });
    for (std::size_t k = 0; k < my_numbers.size(); ++k)
      alphas_[k] = model_options_.alphas[at(report_.columns[at(my_numbers[k])].chosen)];
    batch_->fit(models_.back(), std::span(alphas_).first(my_numbers.size()), X.local(), found_.data());
    for (std::size_t k = 0; k < my_numbers.size(); ++k) {
      RidgeColumn& column = report_.columns[at(my_numbers[k])];
      column.intercept = found_[k].intercept;
      column.reason = found_[k].reason;
      column.residual_norm = found_[k].residual_norm;
      column.normal_residual_norm = found_[k].normal_residual_norm;
      mine_.push_back(my_numbers[k]);
    }
    DistMatrix<T> of_batch = X_->column_slice(some.first, some.sizes);
    redistribute<T>(X, of_batch);
  }
  void score(std::span<const Index> numbers) {
    Index f = 0;
    for (const RidgeModel<T>& model : models_) {
      if (model.tested.size == 0) continue;
      batch_->score(model, scores_.data());
      for (std::size_t k = 0; k < numbers.size(); ++k)
        for (Index d = 0; d < dampings(); ++d)
          scores_of(numbers[k])[f + d * score_folds()] = scores_[k * at(dampings()) + at(d)];
      ++f;
    }
  }

  /// Chooses for these columns, whose scores are known.
  void choose(std::span<const Index> columns) {
    std::map<Index, std::vector<Index>> groups;
    for (const Index j : columns) groups[options_.groups.empty() ? j : options_.groups[at(j)]].push_back(j);
    for (const auto& [number, together] : groups) {
      std::vector<double> means(at(dampings() * score_folds()), 0.0);
      for (const Index j : together)
        for (std::size_t k = 0; k < means.size(); ++k)
          means[k] += scores_of(j)[k] / static_cast<double>(together.size());
      const std::optional<Index> chosen = choose_alpha(options_.alphas, means, options_.one_standard_error);
      for (const Index j : together) set_choice(j, chosen);
    }
  }
  void set_choice(Index j, std::optional<Index> chosen) {
    RidgeColumn& column = report_.columns[at(j)];
    const Index folds = score_folds();
    for (Index d = 0; d < dampings(); ++d) {
      double sum = 0;
      for (Index f = 0; f < folds; ++f) sum += scores_of(j)[f + d * folds];
      report_.scores[at(d + j * dampings())] = sum / static_cast<double>(folds);
    }
    // No damping has a score only if rows are predicted from themselves alone: the largest has least of that.
    const auto largest = std::max_element(options_.alphas.begin(), options_.alphas.end());
    column.chosen = chosen.value_or(largest - options_.alphas.begin());
    column.alpha = options_.alphas[at(column.chosen)];
    column.score = report_.scores[at(column.chosen + j * dampings())];
  }
  void note_deciding_row() {
    const RidgeModel<T>& model = models_.back();
    if (rows_.of_data() || !model_options_.by_rows) return;
    for (std::size_t k = 0; k < model.leverage.size(); ++k) {
      if (1 - model.leverage[k] > RidgeModel<T>::least_left) continue;
      const Index row = rows_.numbers()[k % at(rows_.rows())];
      if (report_.deciding_row < 0 || row < report_.deciding_row) report_.deciding_row = row;
    }
  }
  void note_ends() {
    const auto [least, most] = std::minmax_element(options_.alphas.begin(), options_.alphas.end());
    report_.at_smallest = report_.at_largest = 0;
    if (*least == *most) return;
    for (const RidgeColumn& column : report_.columns) {
      if (column.alpha == *least) ++report_.at_smallest;
      if (column.alpha == *most) ++report_.at_largest;
    }
  }
  /// Tells all ranks of the columns that others have fitted.
  void share_columns() {
    constexpr Index figures = 5;
    std::vector<double> sums;
    attempt(comm_, [&] { sums.assign(at(figures * B_.cols()), 0.0); });
    for (const Index j : mine_) {
      const RidgeColumn& column = report_.columns[at(j)];
      double* const of_column = &sums[at(figures * j)];
      of_column[0] = column.intercept.real();
      of_column[1] = column.intercept.imag();
      of_column[2] = static_cast<double>(column.reason);
      of_column[3] = column.residual_norm;
      of_column[4] = column.normal_residual_norm;
    }
    comm_.all_reduce(sums, ReduceOp::sum);
    for (Index j = 0; j < B_.cols(); ++j) {
      const double* const of_column = &sums[at(figures * j)];
      RidgeColumn& column = report_.columns[at(j)];
      column.intercept = {of_column[0], of_column[1]};
      column.reason = static_cast<StopReason>(static_cast<int>(of_column[2]));
      column.residual_norm = of_column[3];
      column.normal_residual_norm = of_column[4];
    }
  }

  const std::shared_ptr<const ProcessGrid> grid_;
  Communicator& comm_;
  const ConstDistMatrix<T>& B_;
  const RidgeOptions& options_;
  DistMatrix<T>* const X_;
  const Folds folds_;
  FoldRows<T> rows_;
  ModelOptions model_options_;
  std::vector<Index> wanted_;  // the folds of the models
  std::vector<RidgeModel<T>> models_;
  std::vector<ColumnBatch> batches_;
  std::optional<RidgeBatch<T>> batch_;
  std::vector<double> alphas_, scores_;  // of the columns of a batch
  std::vector<RidgeColumn> found_;
  std::vector<double> fold_scores_;  // of fold f, damping d and column j at f + folds (d + dampings j)
  std::vector<Index> mine_;          // the columns that this rank has fitted
  RidgeReport report_;
};

}  // namespace

template <Scalar T>
RidgeReport ridge(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const RidgeOptions& options,
                  DistMatrix<T>* X) {
  const auto& grid = A.domain().grid;
  agree(grid, where, [&](Agreement& agreement) {
    describe(agreement, A, B, options, X);
    require_fit(A, B, options, X);
  });
  if (!grid->is_member()) return {};
  const TraceRegion region("ridge");
  std::optional<RidgeRun<T>> run;
  attempt(grid->comm(), [&] { run.emplace(A, B, options, X); });
  return run->run();
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template RidgeReport ridge(const LinearOperator<T>&, const ConstDistMatrix<T>&, const RidgeOptions&, \
                             DistMatrix<T>*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
