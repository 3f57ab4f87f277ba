// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local_operator.hpp"

namespace gridlops {

/// local_operator() of functions of the library.
template <Scalar T>
OperatorPtr<T> library_local_operator(Space range, Space domain, LocalProduct<T> forward,
                                      LocalProduct<T> adjoint);

}  // namespace gridlops
