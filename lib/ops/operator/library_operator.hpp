// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "comm/scratch.hpp"
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

/// A matrix in a space, in the scratch memory of its grid. The rank is a member.
template <Scalar T>
class ScratchMatrix {
 public:
  ScratchMatrix(const Space& space, const Partition& columns)
      : memory_(*space.grid, count(space, columns)),
        matrix_(space.grid, space.layout(columns),
                MatrixView<T>(memory_.data(), space.local_rows(), space.local_columns(columns))) {}

  DistMatrix<T>& matrix() { return matrix_; }

  /// Its bytes.
  static Index bytes(const Space& space, const Partition& columns) {
    return ScratchStack::bytes_of<T>(count(space, columns));
  }

 private:
  static Index count(const Space& space, const Partition& columns) {
    return space.local_rows() * space.local_columns(columns);
  }

  ScratchArray<T> memory_;
  DistMatrix<T> matrix_;
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
