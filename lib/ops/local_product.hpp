// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/buffer.hpp"

namespace gridlops {

/// Products of local blocks, as the distributed algorithms need them: Y ← α op(A) X + β Y with few or many
/// columns in X.
///
/// Column-stable, every product goes to BLAS in groups of a fixed number of columns, the last one filled up
/// with zeros: BLAS then does the same to a column whatever its neighbours and however many they are. (Its
/// kernels handle a full group in one way; with a varying number of columns OpenBLAS varies the order of its
/// sums.)
template <Scalar T>
class LocalProduct {
 public:
  LocalProduct(std::shared_ptr<Backend> backend, bool column_stable)
      : backend_(std::move(backend)), column_stable_(column_stable) {}

  void multiply(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

 private:
  /// Divides by the columns of every micro-kernel that BLAS libraries are known to have.
  static constexpr Index group = 8;

  std::shared_ptr<Backend> backend_;
  bool column_stable_;
  mutable Buffer<T> padded_X_, padded_Y_;
};

}  // namespace gridlops
