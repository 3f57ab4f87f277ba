// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/comm/failure.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "ops/matrix/stationary_products.hpp"
#include "streamed/block_in_parts.hpp"

namespace gridlops {

/// Throws UsageError if the memory of these options, or the grid, allows no matrix on disks.
void require_disk_possible(const ProcessGrid& grid, const StreamOptions& options);
/// Checks these options, and lets all ranks agree on them.
void check_options(Agreement& agreement, const ProcessGrid& grid, const StreamOptions& options);
/// Checks a matrix in memory, too. Throws also ShapeError. caller: a name, for messages.
template <Scalar T>
void check_matrix(const char* caller, Agreement& agreement, const ConstDistMatrix<T>& A,
                  const StreamOptions& options);

/// A rank's block.
template <Scalar T>
struct MadeStreamed {
  std::shared_ptr<BlockInParts<T>> block{};  ///< null on idle ranks
  double norm = 0;                           ///< ‖block‖_F
};

inline ReductionOrder reduction_order(const StreamOptions& options) {
  return options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
}

/// The operator of the blocks of all ranks (collective over the grid). `shape` has the layout of their
/// matrix.
template <Scalar T>
StreamedMatrixPtr<T> make_streamed(const ConstDistMatrix<T>& shape, const MadeStreamed<T>& made,
                                   std::shared_ptr<StationaryProducts<T>> products);

}  // namespace gridlops
