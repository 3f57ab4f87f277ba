// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// The operator of the blocks that all ranks make (collective over the grid); make_block() may throw on one
/// rank alone. Ã is a power of two times what they are. `layout`: of a matrix in dense blocks. Completes the
/// report by the bytes. may_fail: whether products may, on one rank alone. Throws on all ranks.
template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       const std::function<CompressedBlock<T>()>& make_block, int power,
                                       CompressionReport report, bool may_fail = false);
/// What idle ranks have of it.
template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout);

}  // namespace gridlops
