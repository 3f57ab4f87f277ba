// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>

#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/products/instruction_set.hpp"
#include "local/products/tile_kernels.hpp"

namespace gridlops {

/// A matrix in host memory, stored in tiles (TileKernels) without gaps: of a run of columns strip below
/// strip, then the next run. Products read long runs, whose way the processor sees, so that it fetches ahead
/// by itself. A complex matrix is a real one with twice the rows, as in real_parts.hpp.
template <Scalar T>
class PackedMatrix {
 public:
  /// Nothing; may only be asked whether it is empty.
  PackedMatrix() = default;
  /// A copy of A, which is not empty. The processor must have the instruction set. Column-stable, a column's
  /// bits depend neither on the other columns nor on their number. After some columns each, `taken` is told
  /// how many it has: where those are given up, there is never much more than one matrix, unless it is low or
  /// narrow: rows and columns are filled up to whole tiles.
  PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A, InstructionSet set,
               bool column_stable, const std::function<void(Index cols)>& taken = {});

  bool empty() const { return kernels_ == nullptr; }

  /// Copies A anew, which has the same shape.
  void copy(MatrixView<const T> A, const std::function<void(Index cols)>& taken = {});

  /// Copies the elements of column j out.
  void read_column(Index j, T* to) const;

  /// Y ← α op(A) X + β Y; with β = 0 the old Y is not read.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

  /// Where Q is a sum over ranks: told that the first `computed` rows of this rank's part of it are there,
  /// and says how many rows of Q are there, in Q. No fewer than before; told of all rows, more, until it is
  /// all.
  using Completion = std::function<Index(Index computed)>;

  /// Q ← A P, W ← Aᴴ [R, Q] with A read from memory once. P, R and Q have the same number of columns, and W
  /// twice as many. Aᴴ takes the rows of Q that `completed` says are there; without it, what A P gave.
  void one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                const Completion& completed = {}) const;

  // The tiles, of the real matrix.
  Index cols() const { return cols_; }
  Index strips() const { return (parts_ * rows_ + kernels_->height - 1) / kernels_->height; }
  static constexpr Index strips_at_once() { return 16; }
  /// Of a tile: as many columns as stay in the first-level cache while all right-hand sides use them.
  static constexpr Index depth() { return 64; }
  /// The columns of a run: an eighth of A's, at least 64, at most 1024. While A is packed, so much of it is
  /// there twice.
  Index run() const { return run_; }
  Tile<Real<T>> tile(Index strip, Index col) const;
  Tile<Real<T>> place(Index strip, Index col) const { return tile(strip, col); }

 private:
  static constexpr Index parts_ = is_complex<T> ? 2 : 1;

  Range strip_rows(Index strip) const {
    const Index height = kernels_->height / parts_;
    return {strip * height, std::min(height, rows_ - strip * height)};
  }
  /// Odd, so that not all tiles of a strip fall on the same lines of a cache.
  Index places() const { return strips() < 16 ? strips() : strips() | 1; }

  const TileKernels<Real<T>>* kernels_ = nullptr;
  bool column_stable_ = false;
  Index rows_ = 0, cols_ = 0, run_ = 0;
  Buffer<Real<T>> storage_;  // zeros beside the last column and below the last row
};

/// Whether products of a rows × cols block with so many columns are faster with it packed than with it in
/// columns, on one core, and packing fills up less than a tenth.
bool packed_is_faster(ScalarType type, Index rows, Index cols, Index columns, const KernelChoice& choice);

/// Y ← α op(A) X + β Y for few columns in host memory, reading A from memory once. Any operand may be empty.
/// With β = 0 the old Y is not read. NaN and infinity propagate as in gemm. Column-stable, a column's bits
/// depend neither on the other columns nor on their number. The processor must have the instruction set.
template <Scalar T>
void few_columns_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                      InstructionSet set, bool column_stable);

/// Whether few_columns_gemm() is faster than BLAS with one thread, A being rows × cols.
template <Scalar T>
bool few_columns_gemm_is_faster(Op op, Index rows, Index cols, Index columns, InstructionSet set);

}  // namespace gridlops
