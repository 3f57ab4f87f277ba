// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/base/types.hpp"

namespace gridlops {

/// Orders points along a Hilbert curve, on which neighbours in the order are close in space, so that blocks
/// of a matrix between stations in this order join small regions (not collective). Returns order, where
/// order[k] is the index of the k-th point along the curve.
///
/// positions: the coordinates of point 0, then those of point 1, and so on: points × dimensions numbers; one,
/// two or three dimensions. The curve fills the smallest cube around the points, with 2³¹ cells along a side
/// in two dimensions and 2²¹ in three. So neither a shift nor a common scale of all coordinates changes the
/// order. Points of one cell keep their order. In one dimension, points are sorted.
///
/// Takes memory for two numbers a point. Throws UsageError, alike wherever the arguments are the same, for
/// other dimensions, a negative number of points, or a coordinate that is NaN or infinite, with its index.
GRIDLOPS_EXPORT std::vector<Index> hilbert_order(const double* positions, Index points, int dimensions);

}  // namespace gridlops
