// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Returns the space of such arrays with n samples along one dimension, which is not cut.
Space with_samples(const Space& space, int dim, Index n);

/// Puts zeros behind the samples along one dimension, which is not cut, until there are n.
template <Scalar T>
OperatorPtr<T> zero_padding(const Space& space, int dim, Index n);

}  // namespace gridlops
