// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "solve/checkpoint/state_archive.hpp"

namespace gridlops {

/// Which right-hand sides still take part in an iteration, and where their columns lie. In every part of the
/// column partition the active columns come first, so that products and updates touch only one slice of each
/// part. A column that leaves is swapped with the last active one of its part. All ranks know this for all
/// parts.
///
/// Columns are identified by their global number in the matrix. Entry k of an array with one entry per active
/// column belongs to column(k), part by part, in storage order.
class ActiveColumns {
 public:
  /// All columns are active, each in its place.
  explicit ActiveColumns(Partition columns);

  Index count() const { return active_.total(); }
  const Partition& partition() const { return active_; }
  Index column(Index k) const;

  /// Swaps of local columns (positions in a part), to be made in this order.
  using Swaps = std::vector<std::pair<Index, Index>>;

  // These return the swaps that part `part` must make.

  /// Removes active column k if leaves[k].
  Swaps deflate(const std::vector<char>& leaves, int part);

  /// Activates exactly the columns for which `active` is true. All must be in their places, as after
  /// restore().
  Swaps activate(const std::vector<char>& active, int part);

  /// Puts every column back in its own place and makes all active.
  Swaps restore(int part);

  /// Activates the columns that are active in `other`, in its order. Both have the same partition of all
  /// columns.
  Swaps arrange_as(const ActiveColumns& other, int part);
  bool same_partition(const ActiveColumns& other) const { return columns_ == other.columns_; }
  /// Whether all columns for which `chosen` is true are active.
  bool has_active(std::vector<char> chosen) const;

  /// The local column at each position of a part.
  const std::vector<Index>& order(int part) const { return order_[static_cast<std::size_t>(part)]; }

  /// When loading, also reads the partition of all columns from the archive.
  void visit(StateArchive& archive);

 private:
  void exchange(int part, Index i, Index j, int swaps_of, Swaps& swaps);

  Partition columns_;  // of all columns, active or not
  Partition active_;
  std::vector<std::vector<Index>> order_;  // for each part, the local column at each position
};

}  // namespace gridlops
