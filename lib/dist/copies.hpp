// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// The hash (XXH3) of columns up to this one, from that of the columns before it.
template <Scalar T>
std::uint64_t hash_of_column(std::span<const T> column, std::uint64_t before);
/// A hash of this rank's block. Not collective; OutOfMemory, on GPUs, is this rank's alone.
template <Scalar T>
std::uint64_t hash_of_block(const ConstDistMatrix<T>& X);

/// Throws ShapeError, on all ranks, unless the copies that ranks have of blocks of X are the same bit by bit
/// (collective over the grid). The text calls the matrix `name`.
template <Scalar T>
void require_equal_copies(const ConstDistMatrix<T>& X, std::string_view name);

}  // namespace gridlops
