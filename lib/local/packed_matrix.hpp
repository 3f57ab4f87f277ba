// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "gridlops/buffer.hpp"
#include "gridlops/matrix_view.hpp"
#include "local/packed_kernels.hpp"

namespace gridlops {

template <Scalar T>
class PackedAdjoint;
template <Scalar T>
using Tiles = typename PackedKernels<Real<T>>::Tiles;
template <Scalar T>
using Ahead = typename PackedKernels<Real<T>>::Ahead;

/// A matrix in host memory, stored in strips of a few rows, these in tiles (PackedKernels), and tiles in
/// chunks (chunk_tiles). Chunks of the same columns lie one after the other. Products read chunks that stay
/// in the first-level cache while all right-hand sides use them, and the normal product finds a strip in the
/// second-level cache when it uses it again. A complex matrix is a real one with twice the rows, as in
/// skinny_parts.hpp.
template <Scalar T>
class PackedMatrix {
 public:
  /// Nothing; may only be asked whether it is empty.
  PackedMatrix() = default;
  /// A copy of A, which is not empty. The processor must have the instruction set. After some columns each,
  /// `taken` is told how many it has: where those are given up, there is never much more than one matrix.
  PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A, InstructionSet set,
               const std::function<void(Index cols)>& taken = {});

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
  static constexpr Index height = PackedKernels<Real<T>>::rows / (is_complex<T> ? 2 : 1);

  Index strips() const { return (rows_ + height - 1) / height; }
  Range strip_rows(Index strip) const {
    return {strip * height, strip + 1 < strips() ? height : rows_ - strip * height};
  }
  /// Some tiles of a strip, from `tile` on: see chunk_tiles.
  struct Chunk {
    Index strip = 0, tile = 0;
  };
  class Walk;

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;
  void adjoint(Op op, T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) const;
  void take_rows(PackedAdjoint<T>& product, Index slot, Index strip, MatrixView<const T> Y,
                 Index first) const;

  Index tiles() const { return (cols_ + kernels_->tile_cols - 1) / kernels_->tile_cols; }
  Index tile_size() const { return PackedKernels<Real<T>>::rows * kernels_->tile_cols; }
  Index tiles_from(Index tile) const;
  /// Odd, so that not all chunks of a strip fall on the same lines of a cache.
  Index places() const { return strips() | 1; }
  /// Where a chunk begins.
  Index offset(const Chunk& chunk) const {
    return (chunk.tile * places() + chunk.strip * tiles_from(chunk.tile)) * tile_size();
  }
  bool is_last(const Chunk& chunk) const;
  void take_tile(MatrixView<const T> A, Index strip, Index tile);
  Tiles<T> span(const Chunk& chunk, Index strips) const;

  const PackedKernels<Real<T>>* kernels_ = nullptr;
  Index rows_ = 0, cols_ = 0;
  Buffer<Real<T>> storage_;  // zeros beside the last column and below the last row
};

/// Whether products with so many columns are faster with A packed than with A in columns, on one core.
bool packed_is_faster(ScalarType type, Index columns, const KernelChoice& choice);

}  // namespace gridlops
