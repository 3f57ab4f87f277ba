// SPDX-License-Identifier: BSD-3-Clause
#include "solve/ridge/ridge_options.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "solve/factor/converted_rows.hpp"
#include "solve/factor/singular_vectors.hpp"
#include "solve/factor/whole_rows.hpp"
#include "solve/ridge/ridge_batch.hpp"

namespace gridlops {

namespace {

constexpr const char* where = "ridge";

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
      folds.predicted() > 0 && folds.all() > 1, where, ": there are ", folds.predicted(),
      " folds, and rows of one fold only; a fold is predicted from others, so give at least 2");
  if (options.score == RidgeScore::negative_mse) return;
  for (Index f = 0; f < folds.predicted(); ++f)
    require<UsageError>(folds.sizes[at(f)] > 1, where, ": the fold of label ", folds.labels[at(f)],
                        " has one row, of which there is no ", name_of(options.score),
                        "; take larger folds, or the score negative-mse");
}

void require_weights(const RidgeOptions& options, Index rows) {
  if (options.weights.empty()) return;
  require<ShapeError>(std::ssize(options.weights) == rows, where, ": A has ", rows, " rows, but there are ",
                      options.weights.size(), " weights");
  for (const double weight : options.weights)
    require<UsageError>(std::isfinite(weight) && weight >= 0, where, ": the weight ", weight,
                        " of a row is impossible; it must be a number that is not negative");
  const Folds folds = folds_of(rows, options);
  std::vector<Index> counts(folds.sizes.size(), 0);
  for (Index i = 0; i < rows; ++i) counts[at(folds.of_row[at(i)])] += options.weights[at(i)] > 0 ? 1 : 0;
  const Index all = std::accumulate(counts.begin(), counts.end(), Index{0});
  require<UsageError>(all > (predicts_all(options) ? 1 : 0), where, ": ", all, " of ", rows,
                      " rows have a weight above 0; give more rows one");
  require<UsageError>(options.validation != RidgeValidation::gcv || all == rows, where, ": ", rows - all,
                      " rows have weight 0, so that gcv has no mean of what rows share in their predictions; "
                      "leave these rows out, or take leave-one-out");
  const Index least = options.score == RidgeScore::negative_mse ? 1 : 2;
  for (Index f = 0; f < folds.predicted(); ++f)
    require<UsageError>(counts[at(f)] >= least && counts[at(f)] < all, where, ": the fold of label ",
                        folds.labels[at(f)], " has ", counts[at(f)], " of ", all,
                        " rows with a weight above 0; it needs at least ", least, ", and so do the others");
}

void require_eigenvectors(Index rows, Index cols, const RidgeOptions& options) {
  const Index order = is_ridge_of_data(rows, cols, predicts_all(options)) ? rows : cols;
  require<UsageError>(order <= most_eigenvectors, where, ": A of ", rows, " x ", cols,
                      " has the eigenvectors of ", order, " x ", order,
                      " products; they are computed of at most ", most_eigenvectors,
                      ": take cgls for each damping");
}

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

Folds folds_of(Index rows, const RidgeOptions& options) {
  if (options.validation != RidgeValidation::folds) return {std::vector<Index>(at(rows), 0), {rows}, {}};
  Folds folds;
  std::map<Index, Index> numbers;
  bool some_always_train = false;
  for (const Index label : options.folds) {
    if (label >= 0) numbers.emplace(label, 0);
    some_always_train = some_always_train || label < 0;
  }
  for (auto& [label, number] : numbers) {
    number = folds.predicted();
    folds.labels.push_back(label);
  }
  folds.sizes.assign(numbers.size() + (some_always_train ? 1 : 0), 0);
  for (const Index label : options.folds) {
    folds.of_row.push_back(label < 0 ? folds.predicted() : numbers.at(label));
    ++folds.sizes[at(folds.of_row.back())];
  }
  return folds;
}

std::vector<double> weights_of(Index rows, const RidgeOptions& options) {
  return options.weights.empty() ? std::vector<double>(at(rows), 1.0) : options.weights;
}

void require_options(const RidgeOptions& options, Index rows, Index cols, Index nrhs) {
  require<ShapeError>(options.groups.empty() || std::ssize(options.groups) == nrhs, where, ": B has ", nrhs,
                      " columns, but there are ", options.groups.size(), " numbers of groups");
  require<UsageError>(options.batch >= 0, where, ": a batch of ", options.batch, " columns is impossible");
  require_alphas(options, nrhs);
  require_folds(options, rows);
  require_weights(options, rows);
  require_eigenvectors(rows, cols, options);
}

Index ridge_batch(Index nrhs, Index bytes_of_column, Index asked, int ranks) {
  constexpr Index bytes = Index{256} << 20, least = 64;
  const Index of_all =
      asked > 0 ? asked : std::max(least, bytes / std::max<Index>(bytes_of_column, 1)) * ranks;
  return std::clamp<Index>(of_all, 1, std::max<Index>(nrhs, 1));
}

Index ridge_columns_at_a_time(Index rows, Index cols, Index nrhs, ScalarType type,
                              const RidgeOptions& options, bool with_coefficients, int ranks) {
  require_options(options, rows, cols, nrhs);
  const Index of_column = with_scalar_type(type, [&]<Scalar T>() {
    return RidgeBatch<T>::bytes_of_column(rows, cols, folds_of(rows, options).all(),
                                          is_ridge_of_data(rows, cols, predicts_all(options)), false,
                                          with_coefficients);
  });
  return ridge_batch(nrhs, of_column, options.batch, ranks);
}

Index ridge_bytes(Index rows, Index cols, Index nrhs, ScalarType type, const RidgeOptions& options,
                  bool with_coefficients, int ranks) {
  require_options(options, rows, cols, nrhs);
  const Folds folds = folds_of(rows, options);
  const bool of_data = is_ridge_of_data(rows, cols, predicts_all(options));
  const bool by_rows = options.validation == RidgeValidation::leave_one_out;
  const Index m = rows, n = cols, narrow = size_of(type), wide = size_of_sums(type), together = 512,
              dampings = std::ssize(options.alphas), real = sizeof(double);
  Index kept = 0, made = 0, longest = 0, most_tested = 0;
  const auto add = [&](Index tested, Index trained, bool is_of_all) {
    const Index order = of_data ? trained : n,
                rows_of_R = is_of_all && of_data   ? 0
                            : is_of_all && by_rows ? tested
                                                   : std::min(tested, order),
                rows_of_Q = is_of_all && (of_data || by_rows) ? 0 : tested;
    kept += order * order * wide + (order + rows_of_Q) * rows_of_R * narrow +
            (is_of_all && by_rows ? tested * dampings * real : 0) + n * (wide + real) +
            order * (narrow + real);
    // LAPACK's 2 order², and then the tested rows three times as they are sent, and their products.
    const Index of_lapack = (2 * order * order + 40 * order) * wide;
    const Index of_tested = (of_data ? 0 : 3 * tested * n * narrow) +
                            (is_of_all && of_data ? 0 : 2 * tested + rows_of_R) * order * wide;
    made = std::max(made, of_lapack + of_tested + order * order * (narrow + (of_data ? 0 : wide)));
    longest = std::max(longest, order);
    most_tested = std::max(most_tested, tested);
  };
  for (Index f = 0; f < folds.predicted(); ++f) add(folds.sizes[at(f)], m - folds.sizes[at(f)], false);
  if (with_coefficients || predicts_all(options)) add(predicts_all(options) ? m : 0, m, true);
  made += of_data ? (m * m + 2 * std::min(together, m) * n + 2 * m) * wide
                  : ((folds.all() + 1) * n * n + ConvertedRows<float>::most * n) * wide;
  const auto of_batch = [&](bool is_narrow) {
    const Index of_column = with_scalar_type(type, [&]<Scalar T>() {
      return RidgeBatch<T>::bytes_of_column(m, n, folds.all(), of_data, is_narrow, with_coefficients);
    });
    const Index columns = ridge_batch(nrhs, of_column, options.batch, ranks) / ranks + 1,
                some = std::min<Index>(columns, 256), sent = std::min(together, m);
    return columns * (of_column + sent * (narrow + (is_narrow ? 0 : wide)) + (folds.all() + 8) * wide) +
           (3 * most_tested + longest) * some * narrow + (predicts_all(options) ? longest * some * wide : 0) +
           sent * n * wide;
  };
  const Index of_rows = ((m / ranks + 2) * n + (ranks > 1 ? std::min(together, m) * n : 0)) * narrow +
                        exchanged_rows_bytes(n, narrow, ranks) + 8 * m * Index{sizeof(Index)};
  const Index of_scores = options.validation == RidgeValidation::none
                              ? 0
                              : nrhs * dampings * (std::max<Index>(folds.predicted(), 1) + 1) * real;
  const Index of_report = nrhs * (Index{sizeof(RidgeColumn)} + 5 * real);
  return of_rows + kept + std::max(made, std::max(of_batch(false), of_batch(true))) + of_scores + of_report;
}

}  // namespace gridlops
