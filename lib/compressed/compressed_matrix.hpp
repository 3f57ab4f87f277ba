// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// The operator of these tiles, of which this rank has a block (collective over the grid). Ã is a power of
/// two times what they are. `layout`: of a matrix in dense blocks. Completes the report by the bytes. Throws
/// OutOfMemory on all ranks.
template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       TiledBlock tiles, int power, CompressionReport report);
/// What idle ranks have of it.
template <Scalar T>
CompressedMatrixPtr<T> idle_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout);

}  // namespace gridlops
