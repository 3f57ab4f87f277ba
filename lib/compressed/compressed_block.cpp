// SPDX-License-Identifier: BSD-3-Clause
#include "compressed/compressed_block.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/scratch.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/comm/mpi.hpp"
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
CompressedBlock<T>::CompressedBlock(std::shared_ptr<Backend> backend, const TiledBlock& block,
                                    std::optional<Index> memory)
    : backend_(std::move(backend)) {
  set_up(rows_, block.rows);
  set_up(cols_, block.cols);
  const Places in_rows = number_vectors(rows_, block, true), in_cols = number_vectors(cols_, block, false);
  if (backend_) link_vectors(block, in_rows, in_cols);
  place_lines(block, memory);
}

template <Scalar T>
void CompressedBlock<T>::link_vectors(const TiledBlock& block, const Places& in_rows, const Places& in_cols) {
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
}

/// The vectors of a side follow each other line by line, there precision by precision, and other line by
/// other. Numbers between those of two precisions belong to none.
template <Scalar T>
typename CompressedBlock<T>::Places CompressedBlock<T>::number_vectors(Side& side, const TiledBlock& block,
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
      line.factors[p].shape = {nullptr, line.range.size, next - before, static_cast<Precision>(p)};
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
  side.is_moved = !is_in_order(lines.order);
  if (!side.is_moved || !backend_) return;
  side.order = uploaded(lines.order);
  side.place = uploaded(inverse(lines.order));
}

/// Says where each line, and what it has, begins in its part.
template <Scalar T>
void CompressedBlock<T>::place_lines(const TiledBlock& block, std::optional<Index> memory) {
  std::array<std::vector<Index>, 2> bytes;  // of columns and of rows
  const auto place = [](Stored& stored, Index& next) {
    stored.begin = next;
    next += aligned(stored.shape.bytes());
  };
  for (const bool by_rows : {false, true}) {
    for (Index l = 0; l < std::ssize((by_rows ? rows_ : cols_).lines); ++l) {
      Line& line = (by_rows ? rows_ : cols_).lines[at(l)];
      for (Stored& factor : line.factors) place(factor, line.bytes);
      for (Index j = 0; by_rows && j < count_of(block.cols); ++j) {
        const StoredTile& tile = block.tile(l, j);
        if (!tile.dense) continue;
        place(line.dense.emplace_back(DenseTile{j, {0, {nullptr, tile.rows, tile.cols, *tile.dense}}}).tile,
              line.bytes);
        elements_ += tile.rows * tile.cols;
      }
      bytes[by_rows ? 1 : 0].push_back(line.bytes);
    }
  }
  plan_ = LinePlan(bytes[0], bytes[1], memory);
  for (const bool by_rows : {false, true}) {
    for (const Range part : by_rows ? plan_.rows : plan_.cols) {
      std::vector<Range>& pieces = pieces_.emplace_back();
      Index next = 0;
      for (Index l = part.begin; l < part.end(); ++l) {
        Line& line = (by_rows ? rows_ : cols_).lines[at(l)];
        line.begin = next;
        for (Stored& factor : line.factors) factor.begin += next;
        for (DenseTile& dense : line.dense) dense.tile.begin += next;
        next += line.bytes;
        pieces.push_back({line.begin, line.bytes});
      }
    }
  }
  for (Index l = 0; l < std::ssize(rows_.lines); ++l)
    for (const DenseTile& dense : rows_.lines[at(l)].dense)
      cols_.lines[at(dense.other)].dense.push_back({l, dense.tile});
}

template <Scalar T>
std::vector<Index> CompressedBlock<T>::order(Op op, Index first) const {
  std::vector<Index> parts(pieces_.size());
  std::iota(parts.begin(), parts.end(), first);
  if (op != Op::none) std::rotate(parts.begin(), parts.begin() + std::ssize(plan_.cols), parts.end());
  return parts;
}

template <Scalar T>
void CompressedBlock<T>::store(TiledBlock block, const FetchFactors& fetch, const WritePart& write) {
  for (const bool by_rows : {true, false}) store(by_rows, block, fetch, write);
}

/// One side. What memory a line took as tiles is free before the next one takes its own.
template <Scalar T>
void CompressedBlock<T>::store(bool by_rows, TiledBlock& block, const FetchFactors& fetch,
                               const WritePart& write) const {
  const Side& side = by_rows ? rows_ : cols_;
  const std::vector<Range>& parts = by_rows ? plan_.rows : plan_.cols;
  const Index first_part = by_rows ? std::ssize(plan_.cols) : 0,
              others = count_of(by_rows ? block.cols : block.rows);
  const Kernels<T>& kernels = backend_->template kernels<T>();
  std::vector<std::byte> arranged;  // in host memory: the backend's may be elsewhere
  for (Index part = 0; part < std::ssize(parts); ++part) {
    for (Index l = parts[at(part)].begin; l < parts[at(part)].end(); ++l) {
      const Line& line = side.lines[at(l)];
      arranged.assign(at(line.bytes), std::byte(0));
      const auto put = [&](std::vector<std::byte>& stored, const Stored& in, Index count, Index first) {
        put_narrow<T>({stored.data(), in.shape.rows, count, in.shape.precision},
                      kernels.narrow_strip(in.shape.rows), first, in.shape.cols,
                      arranged.data() + (in.begin - line.begin));
        stored = std::vector<std::byte>();  // {} would keep the memory
      };
      std::array<Index, precisions> first{};
      auto dense = line.dense.begin();
      for (Index other = 0; other < others; ++other) {
        const Index i = by_rows ? l : other, j = by_rows ? other : l;
        StoredTile& tile = block.tile(i, j);
        if (fetch) fetch(i, j, by_rows, tile);
        if (tile.dense) {
          if (by_rows) put(tile.U[static_cast<std::size_t>(*tile.dense)], dense++->tile, tile.cols, 0);
          continue;
        }
        for (std::size_t p = 0; p < precisions; ++p) {
          put((by_rows ? tile.U : tile.V)[p], line.factors[p], tile.ranks[p], first[p]);
          first[p] += tile.ranks[p];
        }
      }
      write(first_part + part, line.begin, arranged.data(), line.bytes);
      keep_alive();
    }
  }
}

template <Scalar T>
void CompressedBlock<T>::store_alone(TiledBlock block, const FetchFactors& fetch,
                                     const std::string& scratch) {
  const auto parts = take_parts(backend_, plan_.parts, {this});
  this->own(parts);
  const Index bytes = plan_.parts.bytes_on_disk();
  if (bytes > 0) parts->put_in(std::make_shared<DiskFile>(DiskFile::nameless(scratch, bytes)));
  store(std::move(block), fetch, [&](Index part, Index begin, const std::byte* from, Index count) {
    const DiskWait wait = parts->writing(count);
    parts->write(part, begin, from, count);
  });
  parts->finish();
  parts->start_reading();
  use_parts(parts, {this});
}

template <Scalar T>
Index CompressedBlock<T>::order_bytes() const {
  Index sum = 0;
  for (const Side* side : {&rows_, &cols_})
    sum += Index{sizeof(Index)} * ((side->is_moved ? 2 * side->size : 0) + side->vectors);
  return sum;
}

template <Scalar T>
Index CompressedBlock<T>::factor_bytes() const {
  const std::vector<Index>& parts = plan_.parts.bytes;
  return std::accumulate(parts.begin(), parts.end(), Index{0});
}

template <Scalar T>
Index CompressedBlock<T>::scratch_bytes(Index columns) const {
  const auto of = [columns](Index rows) { return ScratchStack::bytes_of<T>(rows * columns); };
  return of(rows_.vectors) + of(cols_.vectors) + (rows_.is_moved ? of(rows_.size) : 0) +
         (cols_.is_moved ? of(cols_.size) : 0);
}

/// Row i of Y ← α row from[i] of X + β row i of Y.
template <Scalar T>
void CompressedBlock<T>::move_rows(const Buffer<Index>& from, T alpha, MatrixView<const T> X, T beta,
                                   MatrixView<T> Y) const {
  const Range rows{0, Y.rows};
  backend_->kernels<T>().arrays().add_runs(alpha, {.rows = Y.rows, .first = from.data()}, X, beta, Y,
                                           {.x_rows = {0, X.rows}, .y_rows = rows, .rows = rows});
}

/// Y ← α op(A) X + β Y in two steps, each over the parts of one side. X and Y are in the order of the tiles.
template <Scalar T>
class CompressedBlock<T>::Product {
 public:
  Product(const CompressedBlock& A, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y,
          double flops)
      : A_(A),
        kernels_(A.backend_->template kernels<T>()),
        op_(op),
        in_(op == Op::none ? A.cols_ : A.rows_),
        out_(op == Op::none ? A.rows_ : A.cols_),
        alpha_(alpha),
        beta_(beta),
        X_(X),
        Y_(Y),
        flops_(flops),
        pass_(A.pass(op)) {}

  /// T ← Vᴴ X, or T ← Uᴴ X, and then also with the dense tiles.
  void multiply_in(MatrixView<T> of_in) {
    for_each_part(in_, [&](const std::byte* part, Range lines, double flops) {
      A_.backend_->for_each(lines.size, flops, [&](Index l) {
        const Line& line = in_.lines[at(lines.begin + l)];
        add_factors(Op::adjoint, T(1), line, part, X_.row_block(line.range), T(0),
                    of_in.row_block(line.vectors));
      });
      if (op_ == Op::none) return;
      // Column by column of tiles, so that each sum is one thread's.
      A_.backend_->for_each(std::ssize(out_.lines), flops, [&](Index j) {
        const Line& line = out_.lines[at(j)];
        auto dense = std::partition_point(line.dense.begin(), line.dense.end(),
                                          [&](const DenseTile& tile) { return tile.other < lines.begin; });
        for (; dense != line.dense.end() && dense->other < lines.end(); ++dense)
          add_dense(*dense, part, dense == line.dense.begin() ? beta_ : T(1), line);
      });
    });
  }
  /// Adds U T and the dense tiles, or V T.
  void multiply_out(MatrixView<const T> of_out) {
    for_each_part(out_, [&](const std::byte* part, Range lines, double flops) {
      A_.backend_->for_each(lines.size, flops, [&](Index l) {
        const Line& line = out_.lines[at(lines.begin + l)];
        const bool has_dense_tiles = op_ != Op::none && !line.dense.empty();
        add_factors(Op::none, alpha_, line, part, of_out.row_block(line.vectors),
                    has_dense_tiles ? T(1) : beta_, Y_.row_block(line.range));
        if (op_ != Op::none) return;
        for (const DenseTile& dense : line.dense) add_dense(dense, part, T(1), line);
      });
    });
  }

 private:
  /// Calls work(part, lines, flops) for the parts of a side.
  template <class Work>
  void for_each_part(const Side& side, Work&& work) {
    const double flops_of_line = flops_ / 2 / static_cast<double>(side.lines.size());
    for (const Range lines : &side == &A_.rows_ ? A_.plan_.rows : A_.plan_.cols) {
      work(pass_.get(turn_), lines, flops_of_line * static_cast<double>(lines.size));
      pass_.release_before(++turn_);
    }
  }
  void add_factors(Op op, T alpha, const Line& line, const std::byte* part, MatrixView<const T> from, T beta,
                   MatrixView<T> to) const {
    std::array<NarrowMatrix<T>, precisions> factors;
    for (std::size_t p = 0; p < precisions; ++p) factors[p] = line.factors[p].in(part);
    kernels_.narrow_gemm(op, alpha, factors, from, beta, to);
  }
  void add_dense(const DenseTile& dense, const std::byte* part, T beta, const Line& line) const {
    const NarrowMatrix<T> tile = dense.tile.in(part);
    kernels_.narrow_gemm(op_, alpha_, {&tile, 1}, X_.row_block(in_.lines[at(dense.other)].range), beta,
                         Y_.row_block(line.range));
  }

  const CompressedBlock& A_;
  const Kernels<T>& kernels_;
  const Op op_;
  const Side &in_, &out_;
  const T alpha_, beta_;
  const MatrixView<const T> X_;
  const MatrixView<T> Y_;
  const double flops_;
  const StoredParts::Pass pass_;
  Index turn_ = 0;  // how many parts were used
};

template <Scalar T>
void CompressedBlock<T>::multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                                  MatrixView<T> Y) {
  alpha *= factor_;
  const Side &in = op == Op::none ? cols_ : rows_, &out = op == Op::none ? rows_ : cols_;
  const Index columns = X.cols;
  const TraceRegion region("local product");
  const double flops = product_flops<T>(elements_, 1, columns);
  trace_flops(flops);
  if (Y.empty()) return;

  const ScratchArray<T> in_memory(grid, in.is_moved ? in.size * columns : 0),
      out_memory(grid, out.is_moved ? out.size * columns : 0), coefficients(grid, in.vectors * columns),
      reordered(grid, out.vectors * columns);
  MatrixView<const T> X_tiles = X;
  if (in.is_moved) {
    const MatrixView<T> moved(in_memory.data(), in.size, columns);
    move_rows(in.order, T(1), X, T(0), moved);
    X_tiles = moved;
  }
  const MatrixView<T> Y_tiles = out.is_moved ? MatrixView<T>(out_memory.data(), out.size, columns) : Y;

  const MatrixView<T> of_in(coefficients.data(), in.vectors, columns),
      of_out(reordered.data(), out.vectors, columns);
  Product product(*this, op, out.is_moved ? T(1) : alpha, X_tiles, out.is_moved ? T(0) : beta, Y_tiles,
                  flops);
  product.multiply_in(of_in);
  if (out.vectors > 0) move_rows(out.from_other, T(1), of_in, T(0), of_out);
  product.multiply_out(of_out);
  if (out.is_moved) move_rows(out.place, alpha, Y_tiles, beta, Y);
}

#define GRIDLOPS_INSTANTIATE(T) template class CompressedBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
