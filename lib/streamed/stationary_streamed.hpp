// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/comm/failure.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "ops/stationary/stationary_operator.hpp"
#include "streamed/slab_block.hpp"

namespace gridlops {

/// Throws UsageError if the memory of these options, or the grid, allows no matrix on disks.
void require_disk_possible(const ProcessGrid& grid, const StreamOptions& options);
/// Checks these options, and lets all ranks agree on them.
void check_options(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options);
/// Checks a matrix in memory, too. Throws also ShapeError. caller: a name, for messages.
template <Scalar T>
void check_matrix(const char* caller, Agreement& agreement, const ConstDistMatrix<T>& A,
                  const StreamOptions& options);

/// The operator of blocks that may be on disks. Idle ranks have none.
template <Scalar T, class Interface>
class StoredOperator : public StationaryOperator<T, Interface> {
 public:
  using StationaryOperator<T, Interface>::StationaryOperator;

  Index bytes_read() const final {
    const LocalBlock<T>* const block = this->local_block();
    return block == nullptr ? 0 : block->bytes_read();
  }
  double seconds_waited() const final {
    const LocalBlock<T>* const block = this->local_block();
    return block == nullptr ? 0 : block->seconds_waited();
  }
};

inline ReductionOrder reduction_order(const StreamOptions& options) {
  return options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
}

/// The operator of the blocks of all ranks (collective over the grid). `shape` has the layout of their
/// matrix. block: null on idle ranks.
template <Scalar T>
StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>& shape, std::shared_ptr<SlabBlock<T>> block,
                                   std::shared_ptr<StationaryProducts<T>> products);

}  // namespace gridlops
