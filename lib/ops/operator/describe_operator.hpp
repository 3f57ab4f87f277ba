// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dist/describe_layout.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Names an operator to an agreement: its element type, its shape, and how its models and data lie.
template <Scalar T>
void describe_operator(Agreement& agreement, const LinearOperator<T>& A) {
  agreement.on("the element type", name_of(scalar_type_of<T>)).on("the operator", A.rows(), " x ", A.cols());
  describe_layout(agreement, "its models", A.domain().layout(0));
  describe_layout(agreement, "its data", A.range().layout(0));
}

}  // namespace gridlops
