// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// The identity between two spaces of one array whose elements are ordered differently.
template <Scalar T>
OperatorPtr<T> recut(Space range, Space domain);

}  // namespace gridlops
