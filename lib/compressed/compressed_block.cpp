// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/compressed_block.hpp"

#include <algorithm>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/scratch.hpp"
#include "gridlops/base/trace.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

namespace {

/// Factors begin where those of any precision may.
constexpr Index aligned(Index bytes) { return (bytes + 63) / 64 * 64; }

Index count_of(const TileLines& lines) { return std::ssize(lines.sizes); }

bool is_in_order(const std::vector<Index>& order) {
  for (std::size_t k = 0; k < order.size(); ++k)
    if (order[k] != static_cast<Index>(k)) return false;
  return true;
}

std::vector<Index> inverse(const std::vector<Index>& order) {
  std::vector<Index> place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) place[at(order[k])] = static_cast<Index>(k);
  return place;
}

}  // namespace

template <Scalar T>
CompressedBlock<T>::CompressedBlock(std::shared_ptr<Backend> backend, TiledBlock block)
    : backend_(std::move(backend)) {
  set_up(rows_, block.rows);
  set_up(cols_, block.cols);
  const Places in_rows = number_vectors(rows_, block, true), in_cols = number_vectors(cols_, block, false);
  std::vector<Index> from_cols(at(rows_.vectors)), from_rows(at(cols_.vectors));
  for (std::size_t t = 0; t < block.tiles.size(); ++t) {
    for (std::size_t p = 0; p < precisions; ++p) {
      for (Index k = 0; k < block.tiles[t].ranks[p]; ++k) {
        from_cols[at(in_rows[t][p] + k)] = in_cols[t][p] + k;
        from_rows[at(in_cols[t][p] + k)] = in_rows[t][p] + k;
      }
    }
  }
  rows_.from_other = uploaded(from_cols);
  cols_.from_other = uploaded(from_rows);
  fill(rows_, block, true);
  fill(cols_, block, false);
}

/// The vectors of a side follow each other line by line, there precision by precision, and other line by
/// other. Numbers between those of two precisions belong to none.
template <Scalar T>
typename CompressedBlock<T>::Places CompressedBlock<T>::number_vectors(Side& side, TiledBlock& block,
                                                                       bool by_rows) {
  Places first(block.tiles.size());
  Index next = 0;
  for (Index l = 0; l < std::ssize(side.lines); ++l) {
    Line& line = side.lines[at(l)];
    line.vectors.begin = next;
    for (std::size_t p = 0; p < precisions; ++p) {
      const Index before = next;
      for (Index other = 0; other < count_of(by_rows ? block.cols : block.rows); ++other) {
        const Index i = by_rows ? l : other, j = by_rows ? other : l;
        first[at(i * count_of(block.cols) + j)][p] = next;
        next += block.tile(i, j).ranks[p];
      }
      line.factors[p] = {nullptr, line.range.size, next - before, static_cast<Precision>(p)};
      elements_ += line.range.size * (next - before);
      next = NarrowMatrix<T>::aligned(next);
    }
    line.vectors.size = next - line.vectors.begin;
  }
  side.vectors = next;
  return first;
}

template <Scalar T>
Buffer<Index> CompressedBlock<T>::uploaded(const std::vector<Index>& indices) const {
  Buffer<Index> buffer(backend_, std::ssize(indices));
  backend_->upload(indices.data(), buffer.data(), std::ssize(indices) * Index{sizeof(Index)});
  return buffer;
}

template <Scalar T>
void CompressedBlock<T>::set_up(Side& side, const TileLines& lines) const {
  for (const Index size : lines.sizes) {
    side.lines.emplace_back().range = {side.size, size};
    side.size += size;
  }
  if (is_in_order(lines.order)) return;
  side.order = uploaded(lines.order);
  side.place = uploaded(inverse(lines.order));
}

/// Moves the vectors, and the dense tiles if by rows, into memory of the backend, line by line: what host
/// memory they took is free before the next line takes its own.
template <Scalar T>
void CompressedBlock<T>::fill(Side& side, TiledBlock& block, bool by_rows) {
  const auto for_each_tile = [&](Index l, auto&& work) {
    for (Index other = 0; other < count_of(by_rows ? block.cols : block.rows); ++other)
      work(other, by_rows ? block.tile(l, other) : block.tile(other, l));
  };
  std::vector<Index> ends;
  Index end = 0;
  for (Index l = 0; l < std::ssize(side.lines); ++l) {
    for (const NarrowMatrix<T>& factor : side.lines[at(l)].factors) end += aligned(factor.bytes());
    if (by_rows)
      for_each_tile(l, [&](Index, const StoredTile& tile) { end += tile.dense ? aligned(tile.bytes()) : 0; });
    ends.push_back(end);
  }
  side.memory = Buffer<std::byte>(backend_, end);
  const Kernels<T>& kernels = backend_->template kernels<T>();
  std::byte* to = side.memory.data();
  for (Index l = 0; l < std::ssize(side.lines); ++l) {
    Line& line = side.lines[at(l)];
    // In host memory first: the backend's may be elsewhere.
    std::vector<std::byte> arranged(at(ends[at(l)] - (l == 0 ? 0 : ends[at(l - 1)])));
    Index next = 0;
    const auto put = [&](std::vector<std::byte>& stored, const NarrowMatrix<T>& of, Index count,
                         Index first) {
      put_narrow<T>({stored.data(), of.rows, count, of.precision}, kernels.narrow_strip(of.rows), first,
                    of.cols, arranged.data() + next);
      stored = {};
    };
    for (std::size_t p = 0; p < precisions; ++p) {
      NarrowMatrix<T>& factor = line.factors[p];
      factor.data = to + next;
      Index first = 0;
      for_each_tile(l, [&](Index, StoredTile& tile) {
        if (tile.dense) return;
        put((by_rows ? tile.U : tile.V)[p], factor, tile.ranks[p], first);
        first += tile.ranks[p];
      });
      next += aligned(factor.bytes());
    }
    if (by_rows) {
      for_each_tile(l, [&](Index j, StoredTile& tile) {
        if (!tile.dense) return;
        const NarrowMatrix<T> dense{to + next, tile.rows, tile.cols, *tile.dense};
        put(tile.U[static_cast<std::size_t>(*tile.dense)], dense, tile.cols, 0);
        next += aligned(dense.bytes());
        elements_ += tile.rows * tile.cols;
        line.dense.emplace_back(j, dense);
        cols_.lines[at(j)].dense.emplace_back(l, dense);
      });
    }
    backend_->upload(arranged.data(), to, next);
    to += next;
  }
}

template <Scalar T>
Index CompressedBlock<T>::bytes() const {
  Index sum = 0;
  for (const Side* side : {&rows_, &cols_}) {
    sum += Index{sizeof(Index)} * (side->order.size() + side->place.size() + side->from_other.size());
    sum += side->memory.size();
  }
  return sum;
}

template <Scalar T>
Index CompressedBlock<T>::scratch_bytes(Index columns) const {
  const auto of = [columns](Index rows) { return ScratchStack::bytes_of<T>(rows * columns); };
  return of(rows_.vectors) + of(cols_.vectors) + (rows_.order.size() > 0 ? of(rows_.size) : 0) +
         (cols_.order.size() > 0 ? of(cols_.size) : 0);
}

/// Row i of Y ← α row from[i] of X + β row i of Y.
template <Scalar T>
void CompressedBlock<T>::move_rows(const Buffer<Index>& from, T alpha, MatrixView<const T> X, T beta,
                                   MatrixView<T> Y) const {
  const Range rows{0, Y.rows};
  backend_->kernels<T>().arrays().add_runs(alpha, {.rows = Y.rows, .first = from.data()}, X, beta, Y,
                                           {.x_rows = {0, X.rows}, .y_rows = rows, .rows = rows});
}

template <Scalar T>
void CompressedBlock<T>::multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                                  MatrixView<T> Y) const {
  const Kernels<T>& kernels = backend_->kernels<T>();
  const Side &in = op == Op::none ? cols_ : rows_, &out = op == Op::none ? rows_ : cols_;
  const Index columns = X.cols;
  const TraceRegion region("local product");
  const double flops = product_flops<T>(elements_, 1, columns);
  trace_flops(flops);
  if (Y.empty()) return;

  const bool in_is_moved = in.order.size() > 0, out_is_moved = out.order.size() > 0;
  const ScratchArray<T> in_memory(grid, in_is_moved ? in.size * columns : 0),
      out_memory(grid, out_is_moved ? out.size * columns : 0), coefficients(grid, in.vectors * columns),
      reordered(grid, out.vectors * columns);
  MatrixView<const T> X_tiles = X;
  if (in_is_moved) {
    const MatrixView<T> moved(in_memory.data(), in.size, columns);
    move_rows(in.order, T(1), X, T(0), moved);
    X_tiles = moved;
  }

  const MatrixView<T> of_in(coefficients.data(), in.vectors, columns),
      of_out(reordered.data(), out.vectors, columns);
  backend_->for_each(std::ssize(in.lines), flops / 2, [&](Index l) {
    const Line& line = in.lines[at(l)];
    kernels.narrow_gemm(Op::adjoint, T(1), line.factors, X_tiles.row_block(line.range), T(0),
                        of_in.row_block(line.vectors));
  });
  if (out.vectors > 0) move_rows(out.from_other, T(1), of_in, T(0), of_out);

  const T alpha_out = out_is_moved ? T(1) : alpha, beta_out = out_is_moved ? T(0) : beta;
  const MatrixView<T> Y_tiles = out_is_moved ? MatrixView<T>(out_memory.data(), out.size, columns) : Y;
  backend_->for_each(std::ssize(out.lines), flops / 2, [&](Index l) {
    const Line& line = out.lines[at(l)];
    const MatrixView<T> Y_line = Y_tiles.row_block(line.range);
    kernels.narrow_gemm(Op::none, alpha_out, line.factors, of_out.row_block(line.vectors), beta_out, Y_line);
    for (const auto& [other, tile] : line.dense)
      kernels.narrow_gemm(op, alpha_out, {&tile, 1}, X_tiles.row_block(in.lines[at(other)].range), T(1),
                          Y_line);
  });
  if (out_is_moved) move_rows(out.place, alpha, Y_tiles, beta, Y);
}

#define GRIDLOPS_INSTANTIATE(T) template class CompressedBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
