// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>
#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// The numbers > 0 that a rank has of some columns, in columns; others do not count.
struct ColumnValues {
  std::span<const double> values;
  Index rows = 0;       ///< of this rank
  Index first = 0;      ///< the number of its first column among all
  bool counts = false;  ///< whether it has them for all ranks that hold the same
};

/// Returns the median of each column over all ranks, exactly: of an even number of values the mean of the two
/// in the middle, and 0 of none (collective over comm). No rank gets another's values: the bits of a median
/// are found eight at a time, by counts of values that begin alike.
std::vector<double> column_medians(Communicator& comm, const ColumnValues& mine, Index columns);

}  // namespace gridlops
