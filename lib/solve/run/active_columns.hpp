// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "solve/checkpoint/state_archive.hpp"

namespace gridlops {

/// Which right-hand sides still take part in an iteration, and where their columns lie. In every part of the
/// column partition the active columns come first, so that products and updates touch a slice of each part
/// only. A column that leaves changes places with the last active one of its part. All ranks know this of all
/// parts.
///
/// Columns are named by their global number in the matrices at hand; entry k of a per-active-column array
/// belongs to column(k), part by part, in the order in which the columns lie.
class ActiveColumns {
 public:
  /// All columns are active, each in its place.
  explicit ActiveColumns(Partition columns);

  Index count() const { return active_.total(); }
  const Partition& partition() const { return active_; }
  Index column(Index k) const;

  /// Swaps of local columns (positions in a part), to be made in this order.
  using Swaps = std::vector<std::pair<Index, Index>>;

  // These return the swaps that part `part` has to make.

  /// Takes active column k out if leaves[k].
  Swaps deflate(const std::vector<char>& leaves, int part);

  /// Makes exactly those columns active for which `active` says so. All must be in their places, as after
  /// restore().
  Swaps activate(const std::vector<char>& active, int part);

  /// Puts every column back in its own place. All are active then.
  Swaps restore(int part);

  /// Makes the columns active that are so in `other`, in its order. Both have one partition of all columns.
  Swaps arrange_as(const ActiveColumns& other, int part);
  bool same_partition(const ActiveColumns& other) const { return columns_ == other.columns_; }
  /// Whether all those columns are active for which `chosen` says so.
  bool has_active(std::vector<char> chosen) const;

  /// Which local column of a part lies at each of its positions.
  const std::vector<Index>& order(int part) const { return order_[static_cast<std::size_t>(part)]; }

  /// When it loads, it takes the partition of all columns from the archive, too.
  void visit(StateArchive& archive);

 private:
  void exchange(int part, Index i, Index j, int swaps_of, Swaps& swaps);

  Partition columns_;  // of all, active or not
  Partition active_;
  std::vector<std::vector<Index>> order_;  // per part: which local column lies at a position
};

}  // namespace gridlops
