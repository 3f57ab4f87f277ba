// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops {

/// out ← ((x₀ ∘ x₁) ∘ x₂) ∘ …, elementwise over arrays of reals, one per rank. `out` may be one of them.
void reduce_in_rank_order(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out);

}  // namespace gridlops
