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
#include "solve/factor/converted_rows.hpp"
#include "solve/ridge/ridge_batch.hpp"
#include "solve/ridge/ridge_choice.hpp"

namespace gridlops {

namespace {

constexpr const char* where = "ridge";

/// The rows of each fold; those with a number below zero are in a last one, which is not predicted.
struct Folds {
  std::vector<Index> of_row;
  Index predicted = 0, all = 0;
};
Folds folds_of(Index rows, const RidgeOptions& options) {
  Folds folds;
  if (options.validation != RidgeValidation::folds) return {std::vector<Index>(at(rows), 0), 0, 1};
  std::map<Index, Index> numbers;
  bool some_always_train = false;
  for (const Index label : options.folds) {
    if (label >= 0) numbers.emplace(label, 0);
    some_always_train = some_always_train || label < 0;
  }
  for (auto& [label, number] : numbers) number = folds.predicted++;
  for (const Index label : options.folds)
    folds.of_row.push_back(label < 0 ? folds.predicted : numbers.at(label));
  folds.all = folds.predicted + (some_always_train ? 1 : 0);
  return folds;
}

bool predicts_all(const RidgeOptions& options) {
  return options.validation == RidgeValidation::leave_one_out || options.validation == RidgeValidation::gcv;
}

void require_alphas(const RidgeOptions& options, Index columns) {
  require<UsageError>(!options.alphas.empty(), where, ": there are no dampings; give at least one");
  for (const double alpha : options.alphas)
    require<UsageError>(std::isfinite(alpha) && alpha >= 0, where, ": the damping ", alpha,
                        " is impossible; D^2 must be a number that is not negative");
  const Index count = std::ssize(options.alphas);
  require<ShapeError>(options.validation != RidgeValidation::none || count == 1 || count == columns, where,
                      ": without validation each column has one damping, but there are ", count,
                      " dampings for ", columns, " columns; give one, or as many as columns, or folds");
}

void require_folds(const RidgeOptions& options, Index rows) {
  const bool by_folds = options.validation == RidgeValidation::folds;
  require<UsageError>(by_folds || options.folds.empty(), where, ": there are folds, but the validation is ",
                      name_of(options.validation));
  require<UsageError>(by_folds || !options.one_standard_error, where,
                      ": one standard error is that of folds, but the validation is ",
                      name_of(options.validation));
  require<UsageError>(options.validation != RidgeValidation::gcv || options.score != RidgeScore::correlation,
                      where, ": gcv predicts no rows, so it has no correlation; take leave-one-out");
  require<UsageError>(!predicts_all(options) || rows > 1, where,
                      ": A has one row, which cannot be predicted from others");
  if (!by_folds) return;
  require<ShapeError>(std::ssize(options.folds) == rows, where, ": A has ", rows, " rows, but there are ",
                      options.folds.size(), " labels of folds; give one for each row");
  const Folds folds = folds_of(rows, options);
  require<UsageError>(
      folds.predicted > 0 && folds.all > 1, where, ": there are ", folds.predicted,
      " folds, and rows of one fold only; a fold is predicted from others, so give at least 2");
  if (options.score == RidgeScore::negative_mse) return;
  std::vector<Index> sizes(at(folds.all), 0);
  for (const Index f : folds.of_row) ++sizes[at(f)];
  for (Index f = 0; f < folds.predicted; ++f)
    require<UsageError>(sizes[at(f)] > 1, where, ": fold ", f, " has one row, of which there is no ",
                        name_of(options.score), "; take larger folds, or the score negative-mse");
}

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
  require<ShapeError>(options.groups.empty() || std::ssize(options.groups) == B.cols(), where, ": B has ",
                      B.cols(), " columns, but there are ", options.groups.size(), " numbers of groups");
  require<UsageError>(options.batch >= 0, where, ": a batch of ", options.batch, " columns is impossible");
  require_alphas(options, B.cols());
  require_folds(options, A.rows());
}

/// The columns of all ranks that are worked on at a time: by default as many as fit into 256 MiB of each.
Index batch_of(Index nrhs, Index bytes_of_column, Index asked, int ranks) {
  constexpr Index bytes = Index{256} << 20, least = 64;
  const Index of_all =
      asked > 0 ? asked : std::max(least, bytes / std::max<Index>(bytes_of_column, 1)) * ranks;
  return std::clamp<Index>(of_all, 1, std::max<Index>(nrhs, 1));
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
        rows_(*matrix_in_blocks(A), *grid_, A.cols(), folds_.of_row, folds_.all, options.intercept,
              is_ridge_of_data(A.rows(), A.cols(), predicts_all(options))) {
    report_.folds = folds_.predicted;
    report_.columns.resize(at(B.cols()));
  }

  RidgeReport run() {
    rows_.read();
    require_finite_data();
    model_options_ = {options_.intercept,
                      options_.standardize,
                      options_.validation == RidgeValidation::leave_one_out,
                      predicts_all(options_),
                      {}};
    const int unit = options_.standardize ? 0 : 2 * rows_.power();
    for (const double alpha : options_.alphas) model_options_.alphas.push_back(std::ldexp(alpha, unit));
    std::vector<Index> wanted;
    for (Index f = 0; f < folds_.predicted; ++f) wanted.push_back(f);
    if (X_ != nullptr || predicts_all(options_)) wanted.push_back(RidgeModel<T>::all);
    if (wanted.empty()) return choose_given();
    models_ = make_models<T>(comm_, grid_->backend(), rows_, wanted, model_options_);
    const Index of_column = RidgeBatch<T>::bytes_of_column(
        rows_.rows(), rows_.cols(), folds_.all, rows_.of_data(), models_.front().is_narrow(), X_ != nullptr);
    const Index columns = batch_of(B_.cols(), of_column, options_.batch, comm_.size());
    const Partition& cut = B_.layout().cols.partition;
    std::optional<RidgeBatch<T>> batch;
    const std::vector<ColumnBatch> batches = column_batches(cut, columns);
    attempt(comm_, [&] {
      Index most = 0;
      for (const ColumnBatch& some : batches)
        most = std::max(most, balanced_part(some.sizes.total(), comm_.size(), 0).size);
      batch.emplace(comm_, grid_->backend(), rows_, models_, options_.score, model_options_, X_ != nullptr,
                    most);
      fold_scores_.assign(at(B_.cols() * dampings() * score_folds()), 0.0);
      if (score_folds() > 0)
        report_.scores.assign(at(B_.cols() * dampings()), std::numeric_limits<double>::quiet_NaN());
    });
    const bool validates = options_.validation != RidgeValidation::none;
    // A column of its own damping is fitted at once, so that A^H B is not made again.
    const bool at_once = X_ != nullptr && (options_.groups.empty() || !validates);
    if (!validates) choose_given();
    if (validates || at_once)
      for (const ColumnBatch& some : batches) work_on(*batch, some, validates, at_once);
    if (validates) {
      comm_.all_reduce(fold_scores_, ReduceOp::sum);
      choose(all_columns());
      note_ends();
      if (X_ != nullptr && !at_once)
        for (const ColumnBatch& some : batches) work_on(*batch, some, false, true);
    }
    if (X_ != nullptr) share_columns();
    return std::move(report_);
  }

 private:
  Index dampings() const { return std::ssize(options_.alphas); }
  Index score_folds() const {
    return options_.validation == RidgeValidation::none ? 0 : std::max<Index>(folds_.predicted, 1);
  }
  double* scores_of(Index column) { return fold_scores_.data() + column * dampings() * score_folds(); }

  void require_finite_data() const {
    const std::optional<NonFiniteElement> found = find_non_finite(B_);
    if (found)
      throw InputError(message("B has ", found->value.imag() == 0 ? found->value.real() : found->value.imag(),
                               " at row ", found->row, ", column ", found->col,
                               " (from 0), so that it cannot be fitted: leave the row or the column out"));
  }
  RidgeReport choose_given() {
    for (Index j = 0; j < B_.cols(); ++j) {
      RidgeColumn& column = report_.columns[at(j)];
      column.chosen = dampings() == 1 ? 0 : j;
      column.alpha = options_.alphas[at(column.chosen)];
      column.score = std::numeric_limits<double>::quiet_NaN();
    }
    return report_;
  }
  std::vector<Index> all_columns() const {
    std::vector<Index> all;
    for (Index j = 0; j < B_.cols(); ++j) all.push_back(j);
    return all;
  }

  /// Scores or fits the columns of a batch, or both.
  void work_on(RidgeBatch<T>& batch, const ColumnBatch& some, bool scores, bool fits) {
    const std::vector<Index> numbers = some.numbers_in(B_.layout().cols.partition);
    const Cut columns = Cut::balanced(Axis::all, std::ssize(numbers), *grid_);
    DistMatrix<T> Y, X;
    attempt(comm_, [&] {
      Y = DistMatrix<T>(grid_, {Cut::uncut(rows_.rows()), columns});
      if (fits) X = DistMatrix<T>(grid_, {Cut::uncut(rows_.cols()), columns});
    });
    redistribute<T>(B_.column_slice(some.first, some.sizes), Y);
    const Range mine = Y.local_col_range();
    const std::span<const Index> my_numbers = std::span(numbers).subspan(at(mine.begin), at(mine.size));
    batch.load(Y.local());
    if (scores) score(batch, my_numbers);
    if (!fits) return;
    if (scores) choose({my_numbers.begin(), my_numbers.end()});
    std::vector<double> alphas;
    std::vector<RidgeColumn> found(at(mine.size));
    for (const Index j : my_numbers)
      alphas.push_back(model_options_.alphas[at(report_.columns[at(j)].chosen)]);
    batch.fit(models_.back(), alphas, X.local(), found.data());
    for (std::size_t k = 0; k < my_numbers.size(); ++k) {
      RidgeColumn& column = report_.columns[at(my_numbers[k])];
      column.intercept = found[k].intercept;
      column.reason = found[k].reason;
      column.residual_norm = found[k].residual_norm;
      column.normal_residual_norm = found[k].normal_residual_norm;
      mine_.push_back(my_numbers[k]);
    }
    DistMatrix<T> of_batch = X_->column_slice(some.first, some.sizes);
    redistribute<T>(X, of_batch);
  }
  void score(RidgeBatch<T>& batch, std::span<const Index> numbers) {
    std::vector<double> scores(numbers.size() * at(dampings()));
    Index f = 0;
    for (const RidgeModel<T>& model : models_) {
      if (model.tested.size == 0) continue;
      batch.score(model, scores.data());
      for (std::size_t k = 0; k < numbers.size(); ++k)
        for (Index d = 0; d < dampings(); ++d)
          scores_of(numbers[k])[f + d * score_folds()] = scores[k * at(dampings()) + at(d)];
      ++f;
    }
  }

  /// Chooses for these columns, whose scores are known.
  void choose(const std::vector<Index>& columns) {
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
  std::vector<RidgeModel<T>> models_;
  std::vector<double> fold_scores_;  // of fold f, damping d and column j at f + folds (d + dampings j)
  std::vector<Index> mine_;          // the columns that this rank has fitted
  RidgeReport report_;
};

}  // namespace

const char* name_of(RidgeValidation validation) {
  switch (validation) {
    case RidgeValidation::none:
      return "none";
    case RidgeValidation::folds:
      return "folds";
    case RidgeValidation::leave_one_out:
      return "leave-one-out";
    case RidgeValidation::gcv:
      break;
  }
  return "gcv";
}

const char* name_of(RidgeScore score) {
  switch (score) {
    case RidgeScore::r2:
      return "r2";
    case RidgeScore::correlation:
      return "correlation";
    case RidgeScore::negative_mse:
      break;
  }
  return "negative-mse";
}

std::vector<Index> contiguous_folds(Index rows, Index folds) {
  require<UsageError>(rows >= 0 && folds >= 1, where, ": ", rows, " rows cannot be divided into ", folds,
                      " folds");
  std::vector<Index> labels(at(rows));
  for (Index f = 0; f < folds; ++f) {
    const Range fold = balanced_part(rows, folds, f);
    std::fill_n(labels.begin() + fold.begin, fold.size, f);
  }
  return labels;
}

std::vector<Index> interleaved_folds(Index rows, Index folds) {
  require<UsageError>(rows >= 0 && folds >= 1, where, ": ", rows, " rows cannot be divided into ", folds,
                      " folds");
  std::vector<Index> labels(at(rows));
  for (Index i = 0; i < rows; ++i) labels[at(i)] = i % folds;
  return labels;
}

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

Index ridge_bytes(Index rows, Index cols, Index nrhs, ScalarType type, const RidgeOptions& options,
                  Index folds, bool with_coefficients, int ranks) {
  const bool of_data = is_ridge_of_data(rows, cols, predicts_all(options));
  const Index m = rows, n = cols, narrow = size_of(type), wide = size_of_sums(type),
              all = std::max<Index>(folds, 1),
              tested = folds > 0               ? m / folds + 1
                       : predicts_all(options) ? m
                                               : 0,
              size = std::min(m, n), models = folds + (with_coefficients || folds == 0 ? 1 : 0);
  const bool validates = options.validation != RidgeValidation::none;
  const Index kept_rows = m / ranks * n + n + (ranks > 1 ? FoldRows<float>::together * n : 0);
  const Index rotated = std::min(tested, size);
  const Index kept =
      (models * size * size) * wide + (folds > 0 ? folds : 1) * tested * (rotated + size) * narrow;
  const Index sums = of_data ? m * m + 2 * FoldRows<float>::together * n : (all + 2) * n * n;
  // Eigenvectors take 2 n^2 elements, and predictions of a fold as many as Q, R and the rows.
  const Index made = (sums + 2 * size * size + tested * (2 * n + 2 * size)) * wide + 2 * tested * n * narrow;
  const Index of_column = with_scalar_type(type, [&]<Scalar T>() {
    return RidgeBatch<T>::bytes_of_column(m, n, all, of_data, false, with_coefficients);
  });
  const Index batch = batch_of(nrhs, of_column, options.batch, ranks) / ranks + 1;
  const Index of_batch = batch * of_column + (3 * tested + size) * std::min<Index>(batch, 256) * narrow +
                         FoldRows<float>::together * (n + batch) * wide;
  return kept_rows * narrow + kept + std::max(made, of_batch) +
         (validates ? nrhs * std::ssize(options.alphas) * (all + 1) * Index{sizeof(double)} : 0);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                        \
  template RidgeReport ridge(const LinearOperator<T>&, const ConstDistMatrix<T>&, const RidgeOptions&, \
                             DistMatrix<T>*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
