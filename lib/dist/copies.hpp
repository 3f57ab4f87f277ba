// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>

#include "gridlops/dist_matrix.hpp"

namespace gridlops {

/// Whether the environment variable GRIDLOPS_CHECK asks that copies be compared before each product: "all"
/// does, "off" or nothing does not. Throws UsageError if it is anything else.
bool copies_are_checked();

/// Throws ShapeError, on all ranks, unless the copies that ranks have of blocks of X are the same bit by bit
/// (collective over the grid). The text calls the matrix `name`.
template <Scalar T>
void require_equal_copies(const ConstDistMatrix<T>& X, std::string_view name);

}  // namespace gridlops
