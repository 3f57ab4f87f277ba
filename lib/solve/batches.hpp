// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/dist/partition.hpp"

namespace gridlops {

/// Columns that are solved together: for every part k of a column partition, the sizes.size(k) columns that
/// start at first[k].
struct ColumnBatch {
  std::vector<Index> first;
  Partition sizes;

  /// The columns' numbers in the whole, in storage order.
  std::vector<Index> numbers_in(const Partition& whole) const {
    std::vector<Index> numbers;
    for (int part = 0; part < whole.parts(); ++part)
      for (Index j = 0; j < sizes.size(part); ++j) numbers.push_back(whole.begin(part) + first[at(part)] + j);
    return numbers;
  }
};

/// The maximum number of columns that a batch takes from one part. A batch has at most `batch` columns (0:
/// any number), but may have one from each part.
inline Index batch_width(const Partition& columns, Index batch) {
  return batch == 0 ? std::max<Index>(columns.largest(), 1) : std::max<Index>(batch / columns.parts(), 1);
}

/// Divides all columns into batches. There is at least one batch, which may be empty.
inline std::vector<ColumnBatch> column_batches(const Partition& columns, Index batch) {
  const Index width = batch_width(columns, batch);
  std::vector<ColumnBatch> batches;
  for (Index begin = 0; begin == 0 || begin < columns.largest(); begin += width) {
    std::vector<Index> first, sizes;
    for (int part = 0; part < columns.parts(); ++part) {
      first.push_back(std::min(begin, columns.size(part)));
      sizes.push_back(std::min(width, columns.size(part) - first.back()));
    }
    batches.push_back({std::move(first), Partition::with_sizes(sizes)});
  }
  return batches;
}

/// The columns of a batch. None is larger.
inline Partition first_batch(const Partition& columns, Index batch) {
  return column_batches(columns, batch).front().sizes;
}

}  // namespace gridlops
