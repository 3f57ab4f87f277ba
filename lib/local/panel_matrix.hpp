// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/buffer.hpp"
#include "local/skinny_kernels.hpp"

namespace gridlops {

/// A matrix in host memory, stored in panels of a few rows, one after the other, each by columns without
/// gaps: what memory gives in one piece stays in the second-level cache while it is used twice.
template <Scalar T>
class PanelMatrix {
 public:
  /// Nothing; may only be asked whether it is empty.
  PanelMatrix() = default;
  /// A copy of A. The processor must have the instruction set.
  PanelMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A, InstructionSet set);

  bool empty() const { return kernels_ == nullptr; }

  /// Y ← α op(A) X + β Y; with β = 0 the old Y is not read. A column's bits do not depend on the others.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

  /// Q ← A P, W ← Aᴴ [R, Q] with A read from memory once. P, R and Q have the same number of columns, and W
  /// twice as many.
  void one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W) const;

 private:
  Index panels() const { return (rows_ + height_ - 1) / height_; }
  Range panel_rows(Index panel) const {
    return {panel * height_, panel + 1 < panels() ? height_ : rows_ - panel * height_};
  }
  const Real<T>* panel(Index index) const;
  /// What follows a panel in memory, or the panel again where nothing does.
  const Real<T>* next_panel(Index index) const { return panel(index + 1 < panels() ? index + 1 : index); }

  const SkinnyKernels<Real<T>>* kernels_ = nullptr;
  Index rows_ = 0, cols_ = 0, height_ = 0;
  Buffer<T> storage_;  // panels() · height_ × cols_, zeros below the last row
};

}  // namespace gridlops
