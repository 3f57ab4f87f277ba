// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "solve/run/active_columns.hpp"
#include "solve/run/method_state.hpp"

namespace gridlops {

/// The columns of a batch that iterate, and the state of the method, which follows them. Whenever the active
/// columns change, columns are swapped, and the method gets new views and scalars.
template <Scalar T>
class ActiveBlock {
 public:
  /// Begins with all columns, each in its place. part: the part of the columns that this rank holds.
  ActiveBlock(MethodState<T>& state, const Partition& columns, int part)
      : state_(state), columns_(columns), part_(part) {}

  const ActiveColumns& columns() const { return columns_; }
  Index count() const { return columns_.count(); }
  /// The number of active column k in the batch.
  Index column(Index k) const { return columns_.column(k); }

  /// Removes active column k if leaves[k].
  void deflate(const std::vector<char>& leaves) {
    if (std::find(leaves.begin(), leaves.end(), 1) != leaves.end())
      change([&] { return columns_.deflate(leaves, part_); });
  }
  /// Activates exactly these columns. All must be in their places, as after restore().
  void activate(const std::vector<char>& chosen) {
    change([&] { return columns_.activate(chosen, part_); });
  }
  /// Activates all columns, each in its place.
  void restore() {
    change([this] { return columns_.restore(part_); });
  }
  /// Activates the columns that are active in `other`, in its order.
  void arrange_as(const ActiveColumns& other) {
    change([&] { return columns_.arrange_as(other, part_); });
  }

  /// Calls action() while all columns are in their places and scalars are put away.
  template <class Action>
  void in_their_places(Action&& action) {
    state_.put_scalars_away(columns_);
    ActiveColumns all = columns_;
    ActiveColumns::Swaps swaps = all.restore(part_);
    state_.swap(swaps);
    action();
    std::reverse(swaps.begin(), swaps.end());
    state_.swap(swaps);
  }

 private:
  template <class Change>
  void change(const Change& make_swaps) {
    state_.put_scalars_away(columns_);
    state_.swap(make_swaps());
    state_.show(columns_);
  }

  MethodState<T>& state_;
  ActiveColumns columns_;
  const int part_;
};

}  // namespace gridlops
