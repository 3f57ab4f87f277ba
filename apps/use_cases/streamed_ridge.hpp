// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/finite_checks.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/solve/ridge.hpp"
#include "measure/report.hpp"
#include "use_cases/saved_ridge.hpp"

namespace gridlops::program {

/// The files and choices of a ridge whose targets are read, and whose coefficients are written, some at a
/// time.
struct StreamedRidge {
  std::string rhs, output;  ///< output: empty if only scores are wanted
  MatrixHeader B;
  Index features = 0;
  RidgeOptions options;
  bool keeps_scores = false;  ///< the report gets the scores of all dampings
};

/// Says at about every tenth of the targets how long the others will take.
class TargetProgress {
 public:
  TargetProgress(bool tells, Index all) : tells_(tells), all_(all) {}

  /// saved: these were ready before.
  void add(Index targets, bool saved) {
    done_ += targets;
    const double seconds = clock_.lap();
    if (saved) {
      saved_ += targets;
      return;
    }
    if (tells_ && computed_ == 0 && saved_ > 0)
      print(fmt::format("{} of {} targets were saved before\n", saved_, all_));
    computed_ += targets;
    seconds_ += seconds;
    const Index tenth = 10 * done_ / std::max<Index>(all_, 1);
    if (!tells_ || done_ == all_ || tenth == tenth_) return;
    tenth_ = tenth;
    const double left = seconds_ / static_cast<double>(computed_) * static_cast<double>(all_ - done_);
    print(fmt::format("{} of {} targets, about {} left\n", done_, all_, duration_text(left)));
  }

 private:
  const bool tells_;
  const Index all_;
  Index done_ = 0, saved_ = 0, computed_ = 0, tenth_ = 0;
  double seconds_ = 0;
  Stopwatch clock_;
};

/// Scores and fits all targets by a ridge that is prepared, with what `saved` has of them. Collective over
/// the grid, all ranks of which are in it.
template <Scalar T>
class TargetStream {
 public:
  TargetStream(const StreamedRidge& files, const std::shared_ptr<const ProcessGrid>& grid,
               PreparedRidge<T>& prepared, const SavedRidge& saved, Measurements& measured)
      : files_(files), grid_(grid), prepared_(prepared), saved_(saved), measured_(measured) {
    batch_ = saved.batch(std::max<Index>(prepared.columns_at_a_time(), 1));
    report_.columns.resize(at(files.B.cols));
    if (files.keeps_scores || !files.options.groups.empty())
      report_.scores.resize(at(files.B.cols) * dampings());
  }

  RidgeReport run() {
    const RidgeOptions& options = files_.options;
    std::optional<MatrixWriter<T>> writer;
    const bool fits = !files_.output.empty();
    if (fits)
      writer.emplace(files_.output, grid_, files_.features, files_.B.cols, files_.B.dimensions, files_.rhs);
    std::vector<Index> chosen;
    const bool shares = !options.groups.empty() && options.validation != RidgeValidation::none;
    if (shares) {
      SharedDampings shared(options);
      go("scored", true, {}, nullptr,
         [&](Index j, std::span<const double> scores) { shared.add(options.groups[at(j)], scores); });
      for (const Index group : options.groups) chosen.push_back(shared.chosen(group));
    } else if (options.validation == RidgeValidation::none && options.alphas.size() > 1) {
      for (Index j = 0; j < files_.B.cols; ++j) chosen.push_back(j);
    }
    if (fits || !shares) go("fitted", !shares, chosen, writer ? &*writer : nullptr, {});
    for (std::size_t j = 0; shares && j < chosen.size(); ++j) {
      RidgeColumn& column = report_.columns[j];
      column.chosen = chosen[j];
      column.alpha = options.alphas[at(chosen[j])];
      column.score = report_.scores[j * dampings() + at(chosen[j])];
    }
    if (writer) writer->finish();
    note_ends();
    return std::move(report_);
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  std::size_t dampings() const { return files_.options.alphas.size(); }

  /// Visits all batches; take(column, its fold scores).
  void go(const char* pass, bool scores, const std::vector<Index>& chosen, MatrixWriter<T>* writer,
          const std::function<void(Index, std::span<const double>)>& take) {
    const Index all = files_.B.cols;
    TargetProgress progress(grid_->comm().rank() == 0 && all > batch_, all);
    for (Index first = 0; first < all; first += batch_) {
      const Range columns{first, std::min(batch_, all - first)};
      RidgeReport found;
      DistMatrix<T> X;
      if (writer != nullptr)
        X = allocate_matrix<T>(grid_, column_blocks(*grid_, files_.features, columns.size));
      const bool was_saved = load(pass, columns, scores, found, writer == nullptr ? nullptr : &X);
      if (!was_saved) compute(pass, columns, chosen, found, writer == nullptr ? nullptr : &X);
      Stopwatch clock;
      if (writer != nullptr) writer->write(first, X);
      measured_.write_seconds += clock.lap();
      keep(columns, found, scores, take);
      progress.add(columns.size, was_saved);
    }
  }
  bool load(const char* pass, Range columns, bool scores, RidgeReport& found, DistMatrix<T>* X) {
    const bool validates = scores && files_.options.validation != RidgeValidation::none;
    attempt(grid_->comm(), [&] {
      found.columns.resize(at(columns.size));
      if (validates) found.fold_scores.resize(at(columns.size) * dampings() * at(prepared_.folds_scored()));
    });
    Stopwatch clock;
    const bool is_saved = saved_.load<T>(pass, columns, files_.rhs, files_.B, found, X);
    measured_.read_seconds += clock.lap();
    return is_saved;
  }
  void compute(const char* pass, Range columns, const std::vector<Index>& chosen, RidgeReport& found,
               DistMatrix<T>* X) {
    Stopwatch clock;
    DistMatrix<T> B = allocate_matrix<T>(grid_, column_blocks(*grid_, files_.B.rows, columns.size));
    read_columns(files_.rhs, files_.B, columns.begin, B);
    if (auto wrong = find_non_finite<T>(B)) {
      wrong->col += columns.begin;
      throw InputError(non_finite_text(files_.rhs, *wrong));
    }
    measured_.read_seconds += clock.lap();
    const std::span<const Index> mine =
        chosen.empty() ? std::span<const Index>()
                       : std::span<const Index>(chosen).subspan(at(columns.begin), at(columns.size));
    measured_.compute(*grid_, [&] { found = prepared_.fit(B, X, mine); });
    clock.lap();
    saved_.save<T>(pass, columns, B, found, X);
    measured_.write_seconds += clock.lap();
  }
  void keep(Range columns, const RidgeReport& found, bool scores,
            const std::function<void(Index, std::span<const double>)>& take) {
    std::copy(found.columns.begin(), found.columns.end(), report_.columns.begin() + columns.begin);
    report_.folds = found.folds;
    report_.deciding_row = std::max(report_.deciding_row, found.deciding_row);
    if (!scores || found.fold_scores.empty()) return;
    const std::size_t of_column = found.fold_scores.size() / at(columns.size), folds = of_column / dampings();
    for (Index j = 0; j < columns.size; ++j) {
      const auto all = std::span(found.fold_scores).subspan(at(j) * of_column, of_column);
      if (take) take(columns.begin + j, all);
      for (std::size_t d = 0; !report_.scores.empty() && d < dampings(); ++d) {
        double sum = 0;
        for (std::size_t f = 0; f < folds; ++f) sum += all[f + d * folds];
        report_.scores[d + at(columns.begin + j) * dampings()] = sum / static_cast<double>(folds);
      }
    }
  }
  void note_ends() {
    const auto& alphas = files_.options.alphas;
    const auto [least, most] = std::minmax_element(alphas.begin(), alphas.end());
    if (files_.options.validation == RidgeValidation::none || *least == *most) return;
    for (const RidgeColumn& column : report_.columns) {
      report_.at_smallest += column.alpha == *least ? 1 : 0;
      report_.at_largest += column.alpha == *most ? 1 : 0;
    }
  }

  const StreamedRidge& files_;
  const std::shared_ptr<const ProcessGrid>& grid_;
  PreparedRidge<T>& prepared_;
  const SavedRidge& saved_;
  Measurements& measured_;
  Index batch_ = 0;
  RidgeReport report_;
};

}  // namespace gridlops::program
