// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// Throws UsageError if these options, or the grid, allow no compressed matrix on disks.
void check_for_compressed(const ProcessGrid& grid, const StreamOptions& options);

/// A block on its own with the factors of these tiles, or with those that fetch() brings. on_disk: scratch
/// and memory; null: all stays in memory of the backend. Throws OutOfMemory and OutputError on this rank
/// alone, and what fetch throws.
template <Scalar T>
std::shared_ptr<CompressedBlock<T>> make_block(const std::shared_ptr<Backend>& backend, TiledBlock tiles,
                                               const FetchFactors& fetch = {},
                                               const StreamOptions* on_disk = nullptr);

template <Scalar T>
using MakeBlock = std::function<std::shared_ptr<CompressedBlock<T>>()>;

/// The operator of the blocks that all ranks make (collective over the grid); make() may throw on one rank
/// alone. Ã is a power of two times what they are. `layout`: of a matrix in dense blocks. Completes the
/// report by the bytes. may_fail: whether products may, on one rank alone. Throws on all ranks.
template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       const MakeBlock<T>& make, int power, CompressionReport report,
                                       bool may_fail = false);

/// Makes the operator of an idle rank.
template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout);

}  // namespace gridlops
