// SPDX-License-Identifier: BSD-3-Clause
#include "solve/solve_log.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/instantiate.hpp"
#include "comm/failure/failure.hpp"

namespace gridlops {

template <Scalar T>
SolveLog<T>::SolveLog(const char* solver, ToleranceTest test, const SolveOptions& options,
                      const ConstDistMatrix<T>& X)
    : options_(options),
      X_(X),
      residual_norms_(at(X.cols()), 0.0),
      first_residual_norms_(residual_norms_),
      tested_norms_(residual_norms_),
      x_norms_(residual_norms_),
      objectives_(residual_norms_),
      operator_norms_(residual_norms_),
      places_(at(X.local().cols)) {
  if (test == ToleranceTest::backward_error) residual_tests_ = gradient_tests_ = residual_norms_;
  report_.solver = solver;
  report_.sigma_min = options.sigma_min;
  report_.columns.resize(residual_norms_.size());
}

template <Scalar T>
void SolveLog<T>::continue_from(const SolveReport& before) {
  report_.columns = before.columns;
  // With damping the reported norm may be that of [A; D·I].
  for (std::size_t j = 0; j < operator_norms_.size(); ++j)
    if (options_.damp[static_cast<Index>(j)] == 0) operator_norms_[j] = before.columns[j].operator_norm;
}

template <Scalar T>
template <class Tell>
void SolveLog<T>::tell_all(const Tell& tell) {
  FailureScope failures;
  for (const auto& observer : options_.observers) failures.run([&] { tell(*observer); });
}

template <Scalar T>
void SolveLog<T>::start(const SolveStart& start) {
  tell_all([&start](SolveObserver& observer) { observer.start(start); });
}

template <Scalar T>
void SolveLog<T>::end() {
  tell_all([this](SolveObserver& observer) { observer.end(report_); });
}

template <Scalar T>
void SolveLog<T>::begin_batch(Index batch, const ColumnBatch& columns) {
  batch_ = batch;
  numbers_ = columns.numbers_in(X_.layout().cols.partition);
  first_here_ = columns.first[at(X_.grid()->my_part(X_.layout().cols.axis))];
}

template <Scalar T>
void SolveLog<T>::record(Index iteration, const ActiveColumns& columns, const Verdicts& verdicts) {
  IterationRecord record;
  record.iteration = iteration;
  for (Index k = 0; k < columns.count(); ++k) {
    const ColumnState column = verdicts.reported(columns.column(k));
    const Index number = numbers_[at(columns.column(k))];
    residual_norms_[at(number)] = column.residual_norm;
    first_residual_norms_[at(number)] = column.first_residual_norm;
    tested_norms_[at(number)] = column.relative_norm();
    x_norms_[at(number)] = column.x_norm;
    objectives_[at(number)] = column.objective;
    if (!residual_tests_.empty()) {
      const BackwardErrors errors = verdicts.backward_errors(columns.column(k));
      residual_tests_[at(number)] = errors.of_residual;
      gradient_tests_[at(number)] = errors.of_gradient;
    }
    if (!options_.record_history) continue;
    record.columns.push_back(number);
    record.residual_norms.push_back(column.residual_norm);
    record.tested_norms.push_back(column.relative_norm());
  }
  if (options_.record_history) report_.history.push_back(std::move(record));
}

template <Scalar T>
void SolveLog<T>::tell_observers(const ConstDistMatrix<T>& X, Index iteration, bool at_start,
                                 const ActiveColumns& columns, const Verdicts& verdicts) {
  if (options_.observers.empty()) return;
  Index active = 0;
  for (Index k = 0; k < columns.count(); ++k) active += verdicts[columns.column(k)].reason ? 0 : 1;
  std::iota(places_.begin(), places_.end(), Index{0});
  const std::vector<Index>& order = columns.order(X_.grid()->my_part(X_.layout().cols.axis));
  for (std::size_t position = 0; position < order.size(); ++position)
    places_[at(first_here_ + order[position])] = first_here_ + static_cast<Index>(position);
  const Iterate iterate(X, places_);
  const IterationInfo info{.iteration = iteration,
                           .at_start = at_start,
                           .active_columns = active,
                           .residual_norms = residual_norms_,
                           .first_residual_norms = first_residual_norms_,
                           .tested_norms = tested_norms_,
                           .residual_tests = residual_tests_,
                           .gradient_tests = gradient_tests_,
                           .x_norms = x_norms_,
                           .objectives = objectives_,
                           .iterate = iterate};
  tell_all([&](SolveObserver& observer) {
    if (observer.step(info)) stop_is_wanted_ = true;
    const auto* const abandons = dynamic_cast<const AbandoningObserver*>(&observer);
    if (abandons != nullptr && abandons->has_abandoned()) is_abandoned_ = true;
  });
}

template <Scalar T>
void SolveLog<T>::report_batch(const Verdicts& verdicts) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (std::size_t j = 0; j < numbers_.size(); ++j) {
    const ColumnState& scaled = verdicts[static_cast<Index>(j)];
    const ColumnState column = verdicts.reported(static_cast<Index>(j));
    const bool lost = column.reason == StopReason::non_finite;
    const double relative_normal_norm =
        scaled.data_norm > 0 ? std::ldexp(scaled.final_normal_norm / scaled.data_norm, -scaled.scale.A)
                             : column.final_normal_norm;
    report_.columns[at(numbers_[j])] = {*column.reason,
                                        column.iterations,
                                        lost ? nan : column.final_residual_norm,
                                        lost ? nan : column.final_normal_norm,
                                        lost ? nan : relative_normal_norm,
                                        column.tested_operator_norm(),
                                        column.condition,
                                        lost ? nan : column.reference,
                                        lost ? nan : column.relative_norm(),
                                        column.quadrature};
    operator_norms_[at(numbers_[j])] = column.operator_norm;
    report_.iterations = std::max(report_.iterations, column.iterations);
  }
}

/// The inputs of a verdict other than norms.
template <Scalar T>
std::vector<double> SolveLog<T>::limits() const {
  const double unset = -1;
  std::vector<double> all = options_.tolerance.value_or(unset).values();
  for (const std::optional<double>& tolerance : {options_.atol, options_.btol})
    all.push_back(tolerance.value_or(unset));
  for (const double limit :
       {options_.condition_limit, options_.residual_ratio, static_cast<double>(options_.max_iterations),
        options_.error, options_.sigma_min, options_.frobenius_norm.value_or(unset)})
    all.push_back(limit);
  return all;
}

template <Scalar T>
void SolveLog<T>::visit(StateArchive& archive) {
  if (!has_other_limits_) limits_of_ended_ = limits();
  archive.visit_list(limits_of_ended_);
  has_other_limits_ = limits_of_ended_ != limits();
  // Batches that end from now on do so under these, so that none are those of all.
  if (has_other_limits_) limits_of_ended_.clear();
  double sigma_min = options_.sigma_min;
  archive.visit(sigma_min);
  has_other_sigma_min_ = sigma_min != options_.sigma_min;
  archive.visit_count(batch_, batch_count(X_.layout().cols.partition, options_.batch) - 1);
  archive.visit(report_.iterations, report_.guard_products);
  for (std::vector<double>* norms :
       {&residual_norms_, &first_residual_norms_, &tested_norms_, &residual_tests_, &gradient_tests_,
        &x_norms_, &objectives_, &operator_norms_})
    archive.visit_all(*norms);
  for (ColumnReport& column : report_.columns)
    archive.visit(column.reason, column.iterations, column.residual_norm, column.normal_residual_norm,
                  column.relative_normal_residual_norm, column.operator_norm, column.condition,
                  column.reference_norm, column.tested_norm, column.quadrature);
  if (has_other_sigma_min_)
    for (ColumnReport& column : report_.columns) column.quadrature = 1;
  archive.visit_list(report_.alarms, [&](GuardAlarm& alarm) {
    archive.visit(alarm.kind, alarm.iteration);
    archive.visit_count(alarm.column, X_.cols() - 1);
    archive.visit(alarm.found, alarm.limit);
  });
  archive.visit_list(report_.history, [&](IterationRecord& record) {
    archive.visit(record.iteration);
    archive.visit_list(record.columns, [&](Index& column) { archive.visit_count(column, X_.cols() - 1); });
    record.residual_norms.resize(record.columns.size());
    record.tested_norms.resize(record.columns.size());
    archive.visit_all(record.residual_norms);
    archive.visit_all(record.tested_norms);
  });
}

#define GRIDLOPS_INSTANTIATE(T) template class SolveLog<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
