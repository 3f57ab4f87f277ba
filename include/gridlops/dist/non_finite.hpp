// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <optional>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// An element that is NaN or infinite.
struct NonFiniteElement {
  Index row = 0, col = 0;  ///< global, from 0
  int rank = 0;            ///< of the grid's communicator: one that has the element
  std::complex<double> value;
};

/// Finds the first element of X, column by column, that is NaN or infinite; none if all are finite
/// (collective over the grid; the same on all members, none on idle ranks). Reads X once, and sends a few
/// numbers. Throws OutOfMemory on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT std::optional<NonFiniteElement> find_non_finite(const ConstDistMatrix<T>& X);

}  // namespace gridlops
