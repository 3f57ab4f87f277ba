// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "solve/regularised/growing_space.hpp"

namespace gridlops {

/// M = I + V (σ² (KᴴK + D²I)⁻¹ − I) Vᴴ ≈ σ² (AᴴA + D²I)⁻¹, which makes the singular values of [A; D·I] that
/// belong to the space all equal to σ, about that of its last vectors. The space must outlive M, and have
/// vectors. Its columns are those of the space.
template <Scalar T>
OperatorPtr<T> space_preconditioner(GrowingSpace<T>& space, double damp);

}  // namespace gridlops
