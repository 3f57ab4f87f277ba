// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/communicator.hpp"

namespace gridlops {

/// out ← ((x₀ ∘ x₁) ∘ x₂) ∘ …, elementwise for one array of reals per rank. `out` may be one of these arrays.
void reduce_in_rank_order(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out);

}  // namespace gridlops
