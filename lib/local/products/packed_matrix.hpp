// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/products/one_pass.hpp"
#include "local/tiles/kernel_set.hpp"
#include "local/tiles/planes.hpp"
#include "local/tiles/tile_order.hpp"

namespace gridlops {

/// Whether the real numbers of a packed matrix are stored each as a whole, or as planes: the high halves
/// (planes.hpp) of all, and behind them the low halves.
enum class Packing { whole, planes };

/// Which planes a product reads. From high ones alone, every number is rounded to 21 binary digits.
enum class Planes { both, high };

/// A matrix in host memory, stored in tiles in their order (TileOrder). Products from both planes have the
/// bits of those from whole numbers.
/// Reasons: docs/decisions/0011-packed-storage.md.
template <Scalar T>
class PackedMatrix {
 public:
  /// No matrix; call only empty() on it.
  PackedMatrix() = default;
  /// A copy of A, which must not be empty. The processor must have the instruction set. Only matrices of
  /// doubles, real or complex, have planes. If column-stable, a column's bits depend neither on the other
  /// columns nor on their number. Calls `taken` after every few columns, with the number copied so far. A
  /// caller that gives up those columns of A never holds much more than one matrix, unless A is low or
  /// narrow: rows and columns are filled up to whole tiles.
  PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A, const KernelSet& set,
               bool column_stable, const std::function<void(Index cols)>& taken = {},
               Packing packing = Packing::whole);

  bool empty() const { return storage_.data() == nullptr; }

  /// The bytes of such a copy, in either packing; of an empty A 0.
  static Index bytes(Index rows, Index cols, const KernelSet& set) {
    return rows == 0 || cols == 0 ? 0 : numbers(TileOrder<T>(rows, cols, set)) * Index{sizeof(Real<T>)};
  }

  /// Copies A again; it must have the same shape.
  void copy(MatrixView<const T> A, const std::function<void(Index cols)>& taken = {});

  /// Copies the elements of column j to `to`.
  void read_column(Index j, T* to) const;

  const TileOrder<T>& order() const { return order_; }
  /// Copies the elements of a strip, or of the columns from `first` on, which begin a tile, to `to`, as these
  /// planes have them.
  void read_strip(Index strip, MatrixView<T> to, Planes planes = Planes::both) const;
  void read_columns(Index first, MatrixView<T> to, Planes planes = Planes::both) const;

  /// Y ← α op(A) X + β Y; with β = 0 the old Y is not read.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
                Planes planes = Planes::both) const;

  /// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q, reading A from memory once: see one_pass_of_tiles().
  void one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> U,
                MatrixView<T> V, const Completion& completed = {}, Planes planes = Planes::both) const;

 private:
  class WholeTiles;
  class HighTiles;
  class JoinedTiles;

  /// Calls work(tiles) with the kind of tiles that the matrix has.
  template <class Work>
  void with_tiles(Planes planes, Work&& work) const;

  /// Where a tile begins, in numbers from the first.
  Index offset(Index strip, Index col) const { return order_.place(places(order_), strip, col); }
  /// Stores `count` numbers from this place on, and gets them back.
  void put(const Real<T>* from, Index count, Index place);
  void get(Index count, Index place, Real<T>* to) const;
  void read_tiles(Index strip, Index first, MatrixView<T> to, Planes planes) const;
  HighHalf* high_plane() const { return reinterpret_cast<HighHalf*>(storage_.data()); }
  std::int32_t* low_plane() const { return reinterpret_cast<std::int32_t*>(high_plane() + storage_.size()); }

  /// Odd, so that the tiles of a strip do not all map to the same cache lines.
  static Index places(const TileOrder<T>& order) {
    return order.strips() < 16 ? order.strips() : order.strips() | 1;
  }
  static Index numbers(const TileOrder<T>& order) {
    return places(order) * order.padded_cols() * order.height();
  }

  TileOrder<T> order_;
  bool column_stable_ = false;
  Packing packing_ = Packing::whole;
  Buffer<Real<T>> storage_;
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
