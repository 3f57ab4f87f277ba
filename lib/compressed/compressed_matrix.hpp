// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// Throws UsageError if these options, or the grid, allow no compressed matrix on disks.
void check_for_compressed(const ProcessGrid& grid, const StreamOptions& options);

/// A rank's block, and where its factors are. A block on its own knows what memory they take.
template <Scalar T>
struct MadeBlock {
  std::shared_ptr<CompressedBlock<T>> block{};
  std::shared_ptr<StoredParts> parts{};  ///< null: of a series, which has them
};
/// Stores the factors of a block on its own, as store_alone() does, with its errors.
template <Scalar T>
MadeBlock<T> make_block(const std::shared_ptr<Backend>& backend, TiledBlock tiles,
                        const FetchFactors& fetch = {}, const StreamOptions* on_disk = nullptr);

/// The operator of the blocks that all ranks make (collective over the grid); make() may throw on one rank
/// alone. Ã is a power of two times what they are. `layout`: of a matrix in dense blocks. Completes the
/// report by the bytes. may_fail: whether products may, on one rank alone. Throws on all ranks.
template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       const std::function<MadeBlock<T>()>& make, int power,
                                       CompressionReport report, bool may_fail = false);

/// What idle ranks have of it.
template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout);

}  // namespace gridlops
