// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/export.hpp"
#include "gridlops/matrix_view.hpp"

namespace gridlops {

/// to ← fromᵀ, without conjugation. Both are in host memory and do not overlap. Not collective; throws
/// ShapeError, on this rank alone, unless `to` is from.cols × from.rows.
///
/// A row-major block of m × n elements whose rows begin `stride` elements apart is, to a view, the transpose
/// {data, n, m, stride}. So this makes a column-major block of it, or the other way round:
///
///   transpose<double>({data, n, m, stride}, X.local());
template <Scalar T>
GRIDLOPS_EXPORT void transpose(MatrixView<const T> from, MatrixView<T> to);

}  // namespace gridlops
