// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "command_line/console.hpp"

namespace gridlops::program {

namespace {

constexpr Index rows_at_first = 10;
constexpr Index most_batch_rows = 20;
constexpr double first_patience = 5;  // the longest time without a row, in seconds

}  // namespace

Index next_row_after(Index iteration) {
  return iteration < rows_at_first ? iteration + 1
                                   : std::llround(static_cast<double>(iteration) * std::pow(10, 0.25));
}

std::string lambda_text(const std::vector<double>& lambdas, const std::vector<double>& of_zero,
                        Threshold threshold) {
  double lowest = std::numeric_limits<double>::infinity(), highest = 0;
  Index zero_columns = 0;
  for (std::size_t j = 0; j < lambdas.size(); ++j) {
    if (!(of_zero[j] > 0) || !std::isfinite(of_zero[j])) continue;
    const double share = lambdas[j] / of_zero[j];
    lowest = std::min(lowest, share);
    highest = std::max(highest, share);
    if (share >= 1) ++zero_columns;
  }
  if (lowest > highest) return "";
  const std::string least = fmt::format("{:.3g}", lowest), most = fmt::format("{:.3g}", highest);
  const bool is_soft = threshold == Threshold::soft;
  std::string text =
      fmt::format("lambda is {}{} of {}", least, least == most ? "" : fmt::format(" to {}", most),
                  is_soft ? "|A^H b|_inf" : "that with which the first step from 0 ends there");
  if (is_soft && zero_columns > 0)
    text += fmt::format(", so that x is 0 in {} columns: try 0.1 to 0.01", zero_columns);
  return text + "\n";
}

std::string misfit_text(Misfit misfit, const SolveReport& report, const std::vector<RobustColumn>& columns) {
  RobustColumn most;
  double least = std::numeric_limits<double>::infinity();
  for (const RobustColumn& column : columns) {
    least = std::min(least, column.scale);
    most.scale = std::max(most.scale, column.scale);
    most.solves = std::max(most.solves, column.solves);
    most.rejected += column.rejected;
  }
  if (columns.empty()) return "";
  return fmt::format(
      "--misfit {}: {} after at most {} iterations of {} solves; {} numbers of B have less than half their "
      "weight; scales are {:.3g} to {:.3g}\n",
      name_of(misfit), verdict_text(report), report.iterations, most.solves, most.rejected, least,
      most.scale);
}

SolveProgress::SolveProgress(Index batches, std::shared_ptr<const NonzerosShown> nonzeros)
    : batches_(batches), nonzeros_(std::move(nonzeros)), has_bar_(isatty(STDERR_FILENO) == 1) {}

void SolveProgress::start(const SolveStart& start) {
  if (tolerance_ > 0 || iteration_limit_ > 0) {  // the solver before did not come to an end
    if (last_.iteration != last_printed_) print_row(last_);
    erase_bar();
    print(fmt::format("{} takes its place\n", start.solver));
    last_ = start_of_batch_ = {};
    last_printed_ = 0;
    last_row_seconds_ = last_bar_seconds_ = patience_ = 0;
    clock_.lap();
  }
  tolerance_ = start.tolerance;
  iteration_limit_ = start.max_iterations;
  print(fmt::format("{}iteration      smallest        median       largest    {}columns  seconds\n",
                    batches_ > 1 ? "batch  " : "", nonzeros_ ? "   objective   nonzeros    " : ""));
}

bool SolveProgress::step(const IterationInfo& info) {
  const Summary now = summarise(info);
  const bool begins = now.batch != last_.batch;
  if (begins) begin_batch(now);
  last_ = now;
  if (begins) return false;
  if (row_is_due(now)) print_row(now);
  draw_bar(now);
  if (start_of_batch_.highest == 0) start_of_batch_ = now;  // some solvers have no norm before the first step
  return false;
}

void SolveProgress::end(const SolveReport& report) {
  if (last_.iteration != last_printed_) print_row(last_);
  erase_bar();
  print(fmt::format("{} after at most {} iterations in {}\n", verdict_text(report), report.iterations,
                    duration_text(last_.seconds + clock_.lap())));
}

SolveProgress::Summary SolveProgress::summarise(const IterationInfo& info) {
  Summary now;
  // The iteration count restarts in each batch.
  now.batch = last_.batch == 0 || info.iteration <= last_.iteration ? last_.batch + 1 : last_.batch;
  now.iteration = info.iteration;
  now.active_columns = info.active_columns;
  now.seconds = last_.seconds + clock_.lap();
  for (const double objective : info.objectives) now.objective += objective;
  if (nonzeros_ && nonzeros_->iteration() == info.iteration) now.nonzeros = nonzeros_->count();
  // The norm is zero in columns without a problem to solve, and in future batches.
  norms_.clear();
  for (const double norm : info.tested_norms)
    if (norm > 0 && std::isfinite(norm)) norms_.push_back(norm);
  if (norms_.empty()) return now;
  const auto middle = norms_.begin() + static_cast<std::ptrdiff_t>(norms_.size() / 2);
  std::nth_element(norms_.begin(), middle, norms_.end());
  now.median = *middle;
  const auto [lowest, highest] = std::minmax_element(norms_.begin(), norms_.end());
  now.lowest = *lowest;
  now.highest = *highest;
  return now;
}

void SolveProgress::begin_batch(const Summary& start) {
  // If there are many batches, not every one has a row.
  const bool has_row =
      last_.batch * most_batch_rows / batches_ > (last_.batch - 1) * most_batch_rows / batches_;
  if (last_.batch > 0 && last_.iteration != last_printed_ && has_row) print_row(last_);
  start_of_batch_ = start;
  last_printed_ = 0;
  // With several batches, only the last iteration of each has a row.
  next_row_ = batches_ > 2 ? std::numeric_limits<Index>::max() : 1;
  patience_ = std::max(patience_, first_patience);
}

bool SolveProgress::row_is_due(const Summary& now) {
  if (now.iteration < next_row_ && now.seconds - last_row_seconds_ < patience_) return false;
  if (now.seconds - last_row_seconds_ >= patience_) patience_ *= 2;
  if (now.iteration >= next_row_) next_row_ = next_row_after(now.iteration);
  return true;
}

void SolveProgress::print_row(const Summary& row) {
  erase_bar();
  const std::string batch = batches_ > 1 ? fmt::format("{:>5}  ", row.batch) : "";
  std::string sparsity;
  if (nonzeros_)
    sparsity = fmt::format("{:>12.5e}  {:>9}  ", row.objective,
                           row.nonzeros < 0 ? "" : fmt::format("{:.0f}", row.nonzeros));
  print(fmt::format("{}{:>9}  {:>12.3e}  {:>12.3e}  {:>12.3e}  {}{:>9}  {:>7.2f}\n", batch, row.iteration,
                    row.lowest, row.median, row.highest, sparsity, row.active_columns, row.seconds));
  last_printed_ = row.iteration;
  last_row_seconds_ = row.seconds;
}

double SolveProgress::seconds_left(const Summary& now) const {
  const auto done = static_cast<double>(now.iteration - start_of_batch_.iteration);
  const double pace = (now.seconds - start_of_batch_.seconds) / done;
  auto iterations = static_cast<double>(iteration_limit_ - now.iteration);
  const double fallen = std::log(start_of_batch_.highest / now.highest);
  if (tolerance_ > 0 && fallen > 0) {
    const double to_fall = std::log(now.highest / tolerance_);
    iterations = std::min(iterations, std::max(to_fall, 0.0) * done / fallen);
  }
  return iterations * pace;
}

void SolveProgress::draw_bar(const Summary& now) {
  constexpr double shortest_interval = 0.1;
  constexpr int width = 30;
  if (!has_bar_ || now.seconds - last_bar_seconds_ < shortest_interval) return;
  last_bar_seconds_ = now.seconds;
  bar_is_drawn_ = true;
  const double left = seconds_left(now);
  const double spent = now.seconds - start_of_batch_.seconds;
  const double share = spent + left > 0 ? spent / (spent + left) : 0;
  const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * width);
  const std::string batch = batches_ > 1 ? fmt::format("batch {} of {}, ", now.batch, batches_) : "";
  std::fputs(fmt::format("\r[{}{}] {}iteration {}, about {} left\033[K", std::string(filled, '='),
                         std::string(width - filled, ' '), batch, now.iteration, duration_text(left))
                 .c_str(),
             stderr);
  std::fflush(stderr);
}

void SolveProgress::erase_bar() {
  if (!bar_is_drawn_) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  bar_is_drawn_ = false;
}

std::string verdict_text(const SolveReport& report) {
  std::map<StopReason, Index> counts;
  for (const ColumnReport& column : report.columns) ++counts[column.reason];
  std::string text;
  for (const auto& entry : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", entry.second, name_of(entry.first));
  return text.empty() ? "no columns" : text;
}

bool all_solved(const SolveReport& report) {
  return std::all_of(report.columns.begin(), report.columns.end(),
                     [](const ColumnReport& column) { return is_solved(column.reason); });
}

}  // namespace gridlops::program
