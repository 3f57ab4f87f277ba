// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/local/overlap.hpp"

namespace gridlops {

/// The hash (XXH3) of the columns up to this one, from the hash of the columns before it.
template <Scalar T>
std::uint64_t hash_of_column(std::span<const T> column, std::uint64_t before);
/// A hash of this rank's block. Not collective; on GPUs, throws OutOfMemory on this rank alone.
template <Scalar T>
std::uint64_t hash_of_block(const ConstDistMatrix<T>& X);

/// Throws ShapeError, on all ranks, unless all copies of each block of X agree bit by bit (collective over
/// the grid). The text calls the matrix `name`.
template <Scalar T>
void require_equal_copies(const ConstDistMatrix<T>& X, std::string_view name);

/// Throws UsageError if writing one matrix would overwrite the other, which is read. `both` names them. Only
/// this rank can see that its blocks overlap, so call this within an agreement.
template <Scalar T>
void require_apart(const ConstDistMatrix<T>& read, const ConstDistMatrix<T>& written, const char* operation,
                   const char* both) {
  if (!overlap<T>(read.local(), written.local())) return;
  throw UsageError(message(operation, " would overwrite what it reads: ", both,
                           " overlap in memory. Give each a matrix of its own"),
                   KnownTo::one_rank);
}

}  // namespace gridlops
