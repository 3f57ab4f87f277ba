// SPDX-License-Identifier: BSD-3-Clause
#include "local/packed_matrix.hpp"

#include <algorithm>
#include <array>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/packed_products.hpp"

namespace gridlops {

template <Scalar T>
PackedMatrix<T>::PackedMatrix(const std::shared_ptr<Backend>& backend, MatrixView<const T> A,
                              InstructionSet set, const std::function<void(Index)>& taken)
    : kernels_(&packed_kernels<Real<T>>(set)),
      rows_(A.rows),
      cols_(A.cols),
      storage_(backend, places() * tiles() * tile_size()) {
  // Some strips at a time, so that whole lines of the columns are read.
  constexpr Index at_once = 8;
  for (Index tile = 0; tile < tiles(); tile += chunk_tiles) {
    const Index end = std::min(tile + chunk_tiles, tiles());
    for (Index first = 0; first < strips(); first += at_once)
      for (Index t = tile; t < end; ++t)
        for (Index p = first; p < std::min(first + at_once, strips()); ++p) take_tile(A, p, t);
    if (taken) taken(std::min(end * kernels_->tile_cols, cols_));
  }
}

template <Scalar T>
void PackedMatrix<T>::take_tile(MatrixView<const T> A, Index strip, Index tile) {
  constexpr Index real_rows = PackedKernels<Real<T>>::rows;
  const MatrixView<const Real<T>> real = real_view(A);
  const Index tile_cols = kernels_->tile_cols, first = tile / chunk_tiles * chunk_tiles;
  const Index rows = std::min(real_rows, real.rows - strip * real_rows);
  const Index cols = std::min(tile_cols, cols_ - tile * tile_cols);
  Real<T>* const to = storage_.data() + offset({strip, first}) + (tile - first) * tile_size();
  if (rows < real_rows || cols < tile_cols) std::fill_n(to, tile_size(), Real<T>(0));
  for (Index k = 0; k < cols; ++k) {
    const Real<T>* const from = real.column(tile * tile_cols + k) + strip * real_rows;
    for (Index i = 0; i < rows; ++i) to[i * tile_cols + k] = from[i];
  }
}

/// The order in which products take the chunks of a matrix, those of some strips at once: of more strips, a
/// block, those of the same columns, then the next ones, so that right-hand sides and sums come from a cache
/// no more often than A from memory.
template <Scalar T>
class PackedMatrix<T>::Walk {
 public:
  Walk(const PackedMatrix& matrix, Index columns, Index at_once)
      : matrix_(matrix),
        at_once_(at_once),
        block_((std::clamp<Index>(parts<T> * columns, 1, most_in_block) + at_once - 1) / at_once * at_once) {}

  /// Of a product that keeps something for each strip of a block.
  Index slots() const { return block_; }
  Index slot(const Chunk& chunk) const { return chunk.strip % block_; }

  /// The strips at once that begin with this one.
  Index strips(const Chunk& chunk) const { return std::min(at_once_, matrix_.strips() - chunk.strip); }
  Tiles<T> tiles(const Chunk& chunk) const { return matrix_.span(chunk, strips(chunk)); }
  /// What comes after a chunk; after the last one, itself.
  Ahead<T> ahead(const Chunk& chunk) const {
    const Chunk next = after(chunk);
    const Tiles<T> of = tiles(next.strip < matrix_.strips() ? next : chunk);
    return {of.begin, of.size, of.size};
  }
  Chunk after(const Chunk& chunk) const {
    const Index first = chunk.strip - slot(chunk), end = std::min(first + block_, matrix_.strips());
    if (chunk.strip + at_once_ < end) return {chunk.strip + at_once_, chunk.tile};
    if (!matrix_.is_last(chunk)) return {first, chunk.tile + chunk_tiles};
    return {end, 0};
  }

 private:
  static constexpr Index most_in_block = 16;
  const PackedMatrix& matrix_;
  Index at_once_, block_;
};

template <Scalar T>
Index PackedMatrix<T>::tiles_from(Index tile) const {
  return std::min(chunk_tiles, tiles() - tile);
}

template <Scalar T>
bool PackedMatrix<T>::is_last(const Chunk& chunk) const {
  return chunk.tile + chunk_tiles >= tiles();
}

template <Scalar T>
Tiles<T> PackedMatrix<T>::span(const Chunk& chunk, Index strips) const {
  const Real<T>* const begin = storage_.data() + offset(chunk);
  const Index size = tiles_from(chunk.tile) * tile_size();
  return {begin, size, strips};
}

template <Scalar T>
void PackedMatrix<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  if (Y.empty()) return;
  if (op == Op::none) {
    forward(alpha, X, beta, Y);
  } else {
    adjoint(op, alpha, X, beta, Y);
  }
}

template <Scalar T>
void PackedMatrix<T>::forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  const Walk walk(*this, X.cols, 1);
  PackedForward<T> product(*kernels_, X, walk.slots());
  for (Chunk chunk; chunk.strip < strips(); chunk = walk.after(chunk)) {
    product.run(walk.slot(chunk), walk.tiles(chunk), chunk.tile, walk.ahead(chunk));
    if (!is_last(chunk)) continue;
    const Range rows = strip_rows(chunk.strip);
    for (Index j = 0; j < Y.cols; ++j)
      for (Index i = 0; i < rows.size; ++i)
        add_scaled(alpha, product.sum(walk.slot(chunk), i, j), beta, Y(rows.begin + i, j));
  }
}

template <Scalar T>
void PackedMatrix<T>::adjoint(Op op, T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) const {
  // The sums of a tile stay in registers while all these strips add to them.
  const Walk walk(*this, Y.cols, PackedKernels<Real<T>>::most_strips);
  PackedAdjoint<T> product(*kernels_, op, cols_, Y.cols, walk.slots());
  for (Chunk chunk; chunk.strip < strips(); chunk = walk.after(chunk)) {
    if (chunk.tile == 0)
      for (Index k = 0; k < walk.strips(chunk); ++k)
        take_rows(product, walk.slot(chunk) + k, chunk.strip + k, Y, 0);
    product.run(walk.slot(chunk), walk.tiles(chunk), chunk.tile, walk.ahead(chunk));
  }
  product.finish(alpha, beta, X);
}

/// Puts a strip's rows of Y into a slot, as columns first, ….
template <Scalar T>
void PackedMatrix<T>::take_rows(PackedAdjoint<T>& product, Index slot, Index strip, MatrixView<const T> Y,
                                Index first) const {
  const Range rows = strip_rows(strip);
  if (rows.size < height && first == 0) product.clear(slot);
  for (Index j = 0; j < Y.cols; ++j) product.set(slot, first + j, Y.column(j) + rows.begin, rows.size);
}

template <Scalar T>
void PackedMatrix<T>::one_pass(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                               const Completion& completed) const {
  PackedForward<T> forward(*kernels_, P, 1);
  PackedAdjoint<T> adjoint(*kernels_, Op::adjoint, cols_, W.cols, 1);
  Index complete = 0, done = 0;  // rows of Q that are there, and strips that went through the adjoint
  // A strip goes through the product while an earlier one, still in a cache, goes through the adjoint, in
  // turns, so that memory has something to bring all the time.
  for (Index p = 0; done < strips();) {
    const bool has_product = p < strips();
    const bool has_adjoint = strip_rows(done).end() <= complete;
    if (has_adjoint) {
      take_rows(adjoint, 0, done, R, 0);
      take_rows(adjoint, 0, done, Q, P.cols);
    }
    const Walk walk(*this, 1, 1);
    for (Index tile = 0; tile < tiles(); tile += chunk_tiles) {
      const Ahead<T> ahead = walk.ahead({has_product ? p : done, tile});
      const Index shares = has_product && has_adjoint ? 2 : 1;
      if (has_product) forward.run(0, walk.tiles({p, tile}), tile, ahead.part(0, shares));
      if (has_adjoint) adjoint.run(0, walk.tiles({done, tile}), tile, ahead.part(shares - 1, shares));
    }
    if (has_adjoint) ++done;
    if (has_product) {
      const Range rows = strip_rows(p++);
      for (Index j = 0; j < Q.cols; ++j)
        for (Index i = 0; i < rows.size; ++i) Q(rows.begin + i, j) = forward.sum(0, i, j);
    }
    const Index computed = std::min(p * height, rows_);
    complete = completed ? completed(computed) : computed;
  }
  adjoint.finish(T(1), T(0), W);
}

// From which to which number of columns products with strips were faster, forward and adjoint together, than
// those with columns by skinny_gemm() or OpenBLAS 0.3.21, whichever is chosen, on two Zen 3 cores:
// docs/performance.md has the command and the figures. With AVX-512 it has not been measured.
bool packed_is_faster(ScalarType type, Index columns, const KernelChoice& choice) {
  if (choice.use == KernelChoice::Use::never || choice.set != InstructionSet::avx2) return false;
  struct Columns {
    Index least, most;
  };
  constexpr std::array<Columns, 4> crossover{{{4, 64}, {4, 64}, {2, 48}, {2, 32}}};  // f32, f64, c64, c128
  const Columns range = crossover[static_cast<std::size_t>(type)];
  return range.least <= columns && columns <= range.most;
}

#define GRIDLOPS_INSTANTIATE(T) template class PackedMatrix<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
