// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "compressed/compressed_block.hpp"
#include "gridlops/compressed/compressed_matrix.hpp"

namespace gridlops {

/// The operator of these blocks, of which this rank has one. Ã is a power of two times what they are.
/// `layout`: of a matrix in dense blocks.
template <Scalar T>
CompressedMatrixPtr<T> make_compressed(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                       CompressedBlock<T> block, int power, const CompressionReport& report);

}  // namespace gridlops
