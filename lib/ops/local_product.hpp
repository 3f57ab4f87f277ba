// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/buffer.hpp"

namespace gridlops {

/// Products of local blocks, as the distributed algorithms need them: Y ← α op(A) X + β Y with few or many
/// columns in X.
///
/// Column-stable, products on the host go to stable_gemm(). On a GPU they go to its BLAS in groups of a fixed
/// number of columns, the last one filled up with zeros: a library then does the same to a column however
/// many there are.
template <Scalar T>
class LocalProduct {
 public:
  LocalProduct(std::shared_ptr<Backend> backend, bool column_stable)
      : backend_(std::move(backend)), column_stable_(column_stable) {}

  /// Takes the memory for products in which X and Y have at most so many rows.
  void reserve(Index rows_of_X, Index rows_of_Y) const;

  void multiply(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

 private:
  bool pads() const { return column_stable_ && backend_->memory_space() != MemorySpace::host; }

  /// Divides by the columns of every micro-kernel that BLAS libraries are known to have.
  static constexpr Index group = 8;

  std::shared_ptr<Backend> backend_;
  bool column_stable_;
  mutable Buffer<T> padded_X_, padded_Y_;
};

}  // namespace gridlops
