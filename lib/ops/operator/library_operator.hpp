// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dist/describe_layout.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/ops/local_operator.hpp"

namespace gridlops {

/// An operator that runs no user code, unless an operator that it is built from does.
template <Scalar T>
class LibraryOperator : public LinearOperator<T> {
 protected:
  using LinearOperator<T>::LinearOperator;

 private:
  bool runs_callers_code() const final { return false; }
};

/// local_operator() for functions of the library.
template <Scalar T>
OperatorPtr<T> library_local_operator(Space range, Space domain, LocalProduct<T> forward,
                                      LocalProduct<T> adjoint);

/// The identity between two spaces of one array with different orders of elements.
template <Scalar T>
OperatorPtr<T> recut(Space range, Space domain);

/// Names an operator to an agreement: its element type, its shape, and how its models and data lie.
template <Scalar T>
void describe_operator(Agreement& agreement, const LinearOperator<T>& A) {
  agreement.on("the element type", name_of(scalar_type_of<T>)).on("the operator", A.rows(), " x ", A.cols());
  describe_layout(agreement, "its models", A.domain().layout(0));
  describe_layout(agreement, "its data", A.range().layout(0));
}

}  // namespace gridlops
