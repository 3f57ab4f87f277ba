// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// to ← fromᴴ, in the same way as transpose().
template <Scalar T>
void conjugate_transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace gridlops
