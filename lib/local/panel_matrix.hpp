// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "gridlops/buffer.hpp"
#include "gridlops/matrix_view.hpp"
#include "local/panel_kernels.hpp"

namespace gridlops {

/// A matrix in host memory, stored in panels of a few rows, one after the other, each in tiles
/// (PanelKernels): what memory gives in one piece stays in the second-level cache while it is used twice. A
/// complex matrix is a real one with twice the rows, as in skinny_parts.hpp.
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

  /// Where Q is a sum over ranks: told that the first `computed` rows of this rank's part of it are there,
  /// and says how many rows of Q are there, in Q. No fewer than before; told of all rows, more, until it is
  /// all.
  using Completion = std::function<Index(Index computed)>;

  /// Q ← A P, W ← Aᴴ [R, Q] with A read from memory once. P, R and Q have the same number of columns, and W
  /// twice as many. Aᴴ takes the rows of Q that `completed` says are there; without it, what A P gave.
  void one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                const Completion& completed = {}) const;

 private:
  static constexpr Index height = PanelKernels<Real<T>>::rows / (is_complex<T> ? 2 : 1);

  Index panels() const { return (rows_ + height - 1) / height; }
  Range panel_rows(Index panel) const {
    return {panel * height, panel + 1 < panels() ? height : rows_ - panel * height};
  }
  Index tiles() const { return (cols_ + kernels_->tile_cols - 1) / kernels_->tile_cols; }
  Index panel_size() const { return PanelKernels<Real<T>>::rows * kernels_->tile_cols * tiles(); }
  const Real<T>* panel(Index index) const { return storage_.data() + index * panel_size(); }
  /// What follows a panel in memory, or the panel again where nothing does.
  const Real<T>* next_panel(Index index) const { return panel(index + 1 < panels() ? index + 1 : index); }

  const PanelKernels<Real<T>>* kernels_ = nullptr;
  Index rows_ = 0, cols_ = 0;
  Buffer<Real<T>> storage_;  // zeros beside the last column and below the last row
};

}  // namespace gridlops
