// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Returns a hash (XXH3, 64 bits) of this rank's block of the matrix of an operator that matrix_mult() has
/// made; none for other operators and on idle ranks. It depends on the elements alone, not on how they are
/// stored, so two hashes that differ say that an element has changed in between. Of a copy that summa keeps
/// in shared memory it says nothing. Not collective; reads the block once.
template <Scalar T>
GRIDLOPS_EXPORT std::optional<std::uint64_t> block_hash(const LinearOperator<T>& A);

}  // namespace gridlops
