// SPDX-License-Identifier: BSD-3-Clause
#include "solve/checkpoint/saved_batch.hpp"

#include <algorithm>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"

namespace gridlops {

template <Scalar T>
bool SavedBatch<T>::is_due() const {
  const Checkpoints<T>& checkpoints = batch_.solve.checkpoints;
  if (!checkpoints.saves() || batch_.solve.log.stop_is_asked()) return false;
  const auto is_at_limit = [](const ColumnState& state) {
    return state.reason == StopReason::iteration_limit;
  };
  const auto all = std::count_if(batch_.verdicts.all().begin(), batch_.verdicts.all().end(), is_at_limit);
  Index now = 0, go_on = 0;
  for (Index k = 0; k < batch_.block.count(); ++k) {
    now += is_at_limit(batch_.column(k)) ? 1 : 0;
    go_on += batch_.column(k).reason ? 0 : 1;
  }
  // If other columns restart after a column has reached the iteration limit, they do something that a run
  // with more iterations would not do. So the state after such a restart is not saved.
  if (all > now) return checkpoints.suspends();
  const bool is_end =
      go_on == 0 && batch_.solve.log.batch() + 1 ==
                        batch_count(batch_.solve.B.layout().cols.partition, batch_.solve.options.batch);
  return now > 0 || is_end || checkpoints.due(batch_.iteration);
}

/// Columns are saved in their own places, so that a run on any grid can continue from them.
template <Scalar T>
void SavedBatch<T>::save() {
  const TraceRegion region("checkpoint");
  StateArchive numbers = batch_.solve.checkpoints.begin_numbers();
  numbers.visit(batch_.solve.log);
  std::vector<Index> of_batch = batch_.solve.log.numbers();
  ActiveColumns columns = batch_.block.columns();
  numbers.visit_list(of_batch);
  numbers.visit(columns);
  batch_.block.in_their_places([&] {
    visit(numbers);
    batch_.solve.checkpoints.save(numbers, batch_.solve.state.lasting(), batch_.iteration);
  });
}

template <Scalar T>
void SavedBatch<T>::resume(BatchScale<T>& scale) {
  StateArchive& numbers = batch_.solve.checkpoints.saved_numbers();
  std::vector<Index> saved_columns;
  numbers.visit_list(saved_columns);
  require<InputError>(saved_columns == batch_.solve.log.numbers(),
                      "the checkpoint is of a batch of other right-hand sides: batches of what is cut over "
                      "the grid are as its parts are; go on with as many parts, or with all columns uncut");
  ActiveColumns saved_order = batch_.block.columns();
  numbers.visit(saved_order);
  visit(numbers);
  batch_.solve.checkpoints.take_saved(batch_.solve.state.lasting());
  batch_.solve.state.show(batch_.block.columns());
  scale.resume();
  std::vector<char> unfinished;
  for (ColumnState& column : batch_.verdicts.all()) {
    if (batch_.solve.log.has_other_sigma_min()) column.forget_quadrature();
    batch_.verdicts.judge_anew(column);
    unfinished.push_back(column.reason ? 0 : 1);
  }
  if (saved_order.same_partition(batch_.block.columns()) && saved_order.has_active(unfinished)) {
    batch_.block.arrange_as(saved_order);
  } else {
    batch_.block.activate(unfinished);
  }
}

template <Scalar T>
void SavedBatch<T>::visit(StateArchive& archive) {
  archive.visit(batch_.iteration);
  archive.visit_all(batch_.verdicts.all());
  batch_.solve.state.visit(archive);
}

template <Scalar T>
void SavedBatch<T>::add_flags(std::vector<double>& numbers) {
  if (!flags_are_due_) return;
  numbers.push_back(batch_.solve.log.stop_is_wanted() ? 1 : 0);
  batch_.solve.checkpoints.add_flags(numbers);
}

template <Scalar T>
void SavedBatch<T>::take_flags(std::vector<double>& numbers) {
  if (!flags_are_due_) return;
  flags_are_due_ = false;
  batch_.solve.checkpoints.take_flags(numbers);
  batch_.solve.log.set_stop_is_asked(numbers.back() > 0);
  numbers.pop_back();
}

#define GRIDLOPS_INSTANTIATE(T) template class SavedBatch<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
