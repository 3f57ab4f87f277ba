// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <vector>

#include "gridlops/buffer.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// Sums a block over ranks while it is still being computed: chunk of rows by chunk of rows travels as soon
/// as it is there, a few of them at a time. All ranks have the same chunks.
template <Scalar T>
class RowSum {
 public:
  /// Each rank's Y becomes the sum. `memory` is where chunks travel.
  RowSum(Communicator& comm, ReductionOrder order, const Kernels<T>& kernels, std::vector<Range> chunks,
         MatrixView<T> Y, MatrixView<T> memory)
      : comm_(comm), order_(order), kernels_(kernels), chunks_(std::move(chunks)), Y_(Y), memory_(memory) {}

  /// Told that the first `computed` rows of Y are there: how many rows are summed. Waits only if too many
  /// chunks travel, or if all rows are there, then for one chunk (collective over comm, but not every call
  /// is: ranks may come with their rows in other portions).
  Index advance(Index computed);

 private:
  /// So many chunks may travel while the next one is computed.
  static constexpr std::size_t most_travelling = 1;

  MatrixView<T> place_of(const Range& rows) const {
    return {memory_.data + rows.begin * Y_.cols, rows.size, Y_.cols};
  }
  void start_next();
  void finish_first();

  Communicator& comm_;
  ReductionOrder order_;
  const Kernels<T>& kernels_;
  std::vector<Range> chunks_;
  MatrixView<T> Y_, memory_;
  std::size_t finished_ = 0;
  std::deque<Request> travelling_;
};

}  // namespace gridlops
