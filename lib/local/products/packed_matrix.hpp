// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/products/kernel_set.hpp"
#include "local/products/planes.hpp"
#include "local/products/tile_kernels.hpp"

namespace gridlops {

/// Whether the real numbers of a packed matrix are stored each as a whole, or as planes: the high halves
/// (planes.hpp) of all, and behind them the low halves.
enum class Packing { whole, planes };

/// Which planes a product reads. From high ones alone, every number is rounded to 21 binary digits.
enum class Planes { both, high };

/// A matrix in host memory, stored in tiles (TileKernels) without gaps: the strips of one run of columns, one
/// below the other, then those of the next run. Products read long sequential runs, which the processor
/// recognises and prefetches. A complex matrix is stored as a real one with twice the rows, as in
/// real_parts.hpp. Products from both planes have the bits of those from whole numbers.
template <Scalar T>
class PackedMatrix {
 public:
  /// No matrix; call only empty() on it.
  PackedMatrix() = default;
  /// A copy of A, which must not be empty. The processor must have the instruction set. Only matrices of
  /// doubles, real or complex, have planes. If column-stable, a
  /// column's bits depend neither on the other columns nor on their number. Calls `taken` after every few
  /// columns, with the number copied so far. A caller that gives up those columns of A never holds much more
  /// than one matrix, unless A is low or narrow: rows and columns are filled up to whole tiles.
  PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A, const KernelSet& set,
               bool column_stable, const std::function<void(Index cols)>& taken = {},
               Packing packing = Packing::whole);

  bool empty() const { return kernels_ == nullptr; }

  /// Copies A again; it must have the same shape.
  void copy(MatrixView<const T> A, const std::function<void(Index cols)>& taken = {});

  /// Copies the elements of column j to `to`.
  void read_column(Index j, T* to) const;

  /// Y ← α op(A) X + β Y; with β = 0 the old Y is not read.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
                Planes planes = Planes::both) const;

  /// For a Q that is a sum over ranks. Called with the number of rows of this rank's part of Q that are
  /// `computed`; returns the number of complete rows in Q. That number never decreases, and once all rows are
  /// computed, it grows with each call until all are complete.
  using Completion = std::function<Index(Index computed)>;

  /// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q, reading A from memory once. All have the same number of columns. Aᴴ uses
  /// the rows of Q that `completed` reports as complete; without it, the result of A P.
  void one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U,
                MatrixView<T> V, const Completion& completed = {}, Planes planes = Planes::both) const;

 private:
  class WholeTiles;
  class HighTiles;
  class JoinedTiles;

  static constexpr Index parts_ = is_complex<T> ? 2 : 1;

  /// The depth of a tile: as many columns as stay in the first-level cache while all right-hand sides use
  /// them.
  static constexpr Index depth() { return 64; }
  Index strips() const { return (parts_ * rows_ + kernels_->height - 1) / kernels_->height; }

  /// Calls work(tiles) with the kind of tiles that the matrix has.
  template <class Work>
  void with_tiles(Planes planes, Work&& work) const;
  template <class Tiles>
  void one_pass_of(const Tiles& A, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                   MatrixView<T> U, MatrixView<T> V, const Completion& completed) const;

  /// Where a tile begins, in numbers from the first; its columns.
  Index offset(Index strip, Index col) const;
  Index tile_cols(Index col) const { return std::min(depth(), padded_cols() - col); }
  Index padded_cols() const;
  /// Stores `count` numbers from this place on, and gets them back.
  void put(const Real<T>* from, Index count, Index place);
  void get(Index count, Index place, Real<T>* to) const;
  HighHalf* high_plane() const { return reinterpret_cast<HighHalf*>(storage_.data()); }
  std::int32_t* low_plane() const { return reinterpret_cast<std::int32_t*>(high_plane() + storage_.size()); }

  Range strip_rows(Index strip) const {
    const Index height = kernels_->height / parts_;
    return {strip * height, std::min(height, rows_ - strip * height)};
  }
  /// Odd, so that the tiles of a strip do not all map to the same cache lines.
  Index places() const { return strips() < 16 ? strips() : strips() | 1; }

  const TileKernels<Real<T>>* kernels_ = nullptr;
  bool column_stable_ = false;
  Packing packing_ = Packing::whole;
  Index rows_ = 0, cols_ = 0;
  Index run_ =
      0;  // the columns of a run: an eighth of A's, at least 64, at most 1024; packing holds them twice
  Buffer<Real<T>> storage_;  // with zeros beside the last column and below the last row
};

/// Whether products of a rows × cols block with this many columns are faster, on one core, with the block
/// packed than with it in columns. Blocks that packing might fill up by more than a quarter do not count.
bool packed_is_faster(ScalarType type, Index rows, Index cols, Index columns, const KernelChoice& choice);

/// Y ← α op(A) X + β Y for few columns in host memory, reading A from memory once. Any operand may be empty.
/// With β = 0 the old Y is not read. NaN and infinity propagate as in gemm. If column-stable, a column's bits
/// depend neither on the other columns nor on their number. The processor must have the instruction set.
template <Scalar T>
void few_columns_gemm(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y,
                      const KernelSet& set, bool column_stable);

/// Whether few_columns_gemm() is faster than BLAS with one thread, for an A of rows × cols.
template <Scalar T>
bool few_columns_gemm_is_faster(Op op, Index rows, Index cols, Index columns, const KernelSet& set);

}  // namespace gridlops
