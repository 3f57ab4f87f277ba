// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include "gridlops/base/types.hpp"

namespace gridlops::testing {

template <Scalar T>
constexpr bool is_double = std::is_same_v<Real<T>, double>;

/// Tall, wide and square matrices, some with fewer rows or columns than ranks.
inline constexpr std::pair<Index, Index> factor_shapes[] = {{45, 23}, {23, 45}, {17, 17},
                                                            {3, 2},   {2, 5},   {1, 1}};

}  // namespace gridlops::testing
