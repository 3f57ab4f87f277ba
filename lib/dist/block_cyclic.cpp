// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/block_cyclic.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "local/arrays/array_kernels.hpp"

namespace gridlops {

namespace {

/// `count` blocks of `size` neighbouring indices. The first begins at `local` among the indices of its part,
/// where the others follow directly, and at `global` among all indices, where they are one round apart.
struct Blocks {
  Index local, global, count, size;
};

/// One dimension dealt out in blocks, as one of its parts sees it.
class DealtCut {
 public:
  DealtCut(Index total, Index block, Index first, Index parts, Index part)
      : block_(std::min(block, std::max<Index>(total, 1))),
        round_(block_ * parts),
        begin_((part - first + parts) % parts * block_) {}

  /// How many indices of the part are below `end`.
  Index count_below(Index end) const {
    return end / round_ * block_ + std::clamp<Index>(end % round_ - begin_, 0, block_);
  }
  /// The part's local indices of this global range; they are consecutive.
  Range local_range(Range global) const {
    const Index begin = count_below(global.begin);
    return {begin, count_below(global.end()) - begin};
  }
  /// Splits these local indices into the end of a block, whole blocks, and the beginning of a block; each may
  /// be empty.
  std::array<Blocks, 3> blocks_of(Range local) const {
    const Index head = std::min((block_ - local.begin % block_) % block_, local.size);
    const Index count = (local.size - head) / block_;
    const Index middle = local.begin + head, tail = middle + count * block_;
    return {Blocks{local.begin, global_of(local.begin), 1, head},
            {middle, global_of(middle), count, block_},
            {tail, global_of(tail), 1, local.end() - tail}};
  }
  Index round() const { return round_; }

 private:
  Index global_of(Index local) const { return local / block_ * round_ + begin_ + local % block_; }

  Index block_, round_, begin_;
};

/// The part of the matrix on a rank with a place in the block-cyclic grid.
struct DealtBlock {
  DealtCut rows, cols;
};
DealtBlock block_of(const BlockCyclic& matrix, int rank) {
  const auto [P, Q] = matrix.grid;
  const bool by_row = matrix.order == RankOrder::row_major;
  return {{matrix.rows, matrix.row_block, matrix.first_row, P, by_row ? rank / Q : rank % P},
          {matrix.cols, matrix.col_block, matrix.first_col, Q, by_row ? rank % Q : rank / P}};
}

std::string describe(const BlockCyclic& matrix) {
  return message(matrix.rows, " x ", matrix.cols, " in blocks of ", matrix.row_block, " x ", matrix.col_block,
                 " from (", matrix.first_row, ", ", matrix.first_col, ") of a grid of ", matrix.grid.rows,
                 " x ", matrix.grid.cols, " in ",
                 matrix.order == RankOrder::row_major ? "row-major" : "column-major", " order");
}

/// Rank 0's description of the matrix, with this rank's stride (collective over comm).
BlockCyclic as_rank_0_says(Communicator& comm, const BlockCyclic& mine) {
  std::array<Index, 10> words{mine.grid.rows, mine.grid.cols, static_cast<Index>(mine.order),
                              mine.type,      mine.rows,      mine.cols,
                              mine.row_block, mine.col_block, mine.first_row,
                              mine.first_col};
  comm.broadcast(words, 0);
  return {{static_cast<int>(words[0]), static_cast<int>(words[1])},
          static_cast<RankOrder>(words[2]),
          words[3],
          words[4],
          words[5],
          words[6],
          words[7],
          words[8],
          words[9],
          mine.stride};
}

void check_possible(const BlockCyclic& matrix, int ranks) {
  const auto [P, Q] = matrix.grid;
  require<UsageError>(P > 0 && Q > 0 && P <= ranks / Q, "a block-cyclic matrix on a grid of ", P, " x ", Q,
                      " is impossible with a communicator of ", ranks,
                      "; both numbers must be positive, and their product at most that");
  require<UsageError>(matrix.type == 1, "a matrix with a descriptor of type ", matrix.type,
                      " cannot be read; only type 1 is a dense block-cyclic matrix");
  require<UsageError>(matrix.rows >= 0 && matrix.cols >= 0 && matrix.row_block > 0 && matrix.col_block > 0 &&
                          0 <= matrix.first_row && matrix.first_row < P && 0 <= matrix.first_col &&
                          matrix.first_col < Q,
                      "a block-cyclic matrix of ", describe(matrix),
                      " is impossible; sizes must not be negative, blocks must have elements, and the first "
                      "process must be in the grid");
}

/// Call after check_possible(). Throws on this rank alone if this rank's description cannot be right.
template <Scalar T>
void check_mine(Communicator& comm, Index stride, const BlockCyclic& agreed, const T* local,
                const ConstDistMatrix<T>& X) {
  const ProcessGrid& grid = *X.grid();
  require_here<UsageError>(
      grid.is_member() == (comm.rank() < grid.shape().size()) &&
          (!grid.is_member() || grid.comm().rank() == comm.rank()),
      "the process grid of a matrix does not consist of the first ranks of the communicator "
      "of its block-cyclic form; make both from one communicator");
  require_here<ShapeError>(agreed.rows == X.rows() && agreed.cols == X.cols(), "a block-cyclic matrix of ",
                           agreed.rows, " x ", agreed.cols, " cannot be one of ", X.rows(), " x ", X.cols());
  if (comm.rank() >= agreed.grid.size()) return;
  const Index rows = agreed.local_rows(comm.rank()), cols = agreed.local_cols(comm.rank());
  require_here<UsageError>(stride >= std::max<Index>(rows, 1), "the leading dimension ", stride,
                           " of a block of ", rows, " x ", cols, " is too small; it must be at least ",
                           std::max<Index>(rows, 1));
  require_here<UsageError>(local != nullptr || rows == 0 || cols == 0, "a block of ", rows, " x ", cols,
                           " has no memory: its pointer is null");
}

/// The common elements of a block-cyclic block and a block of X: a rectangle of the former. It travels column
/// by column.
struct Piece {
  Range rows, cols;
  Index offset = 0;
  Index size() const { return rows.size * cols.size; }
};

/// One piece for every rank, one after the other in memory.
template <Scalar T>
struct Side {
  std::vector<Piece> pieces;
  std::vector<Index> counts;
  Buffer<T> memory;

  void add(Range rows, Range cols) {
    const Index offset = pieces.empty() ? 0 : pieces.back().offset + pieces.back().size();
    pieces.push_back({rows, cols, offset});
    counts.push_back(pieces.back().size());
  }
  void reserve(const std::shared_ptr<Backend>& backend) {
    memory = Buffer<T>(backend, pieces.back().offset + pieces.back().size());
  }
  MatrixView<T> packed(const Piece& piece) const {
    return {memory.data() + piece.offset, piece.rows.size, piece.cols.size};
  }
};

/// The data that one rank sends and receives when a matrix changes between the two forms.
template <Scalar T>
struct Exchange {
  BlockCyclic cyclic;
  Side<T> of_cyclic, of_X;  // this rank's block-cyclic block, and its block of X

  /// A piece's position in this rank's block-cyclic block.
  template <class Element>
  MatrixView<Element> within(Element* local, const Piece& piece) const {
    return MatrixView<Element>(local, piece.rows.end(), piece.cols.end(), cyclic.stride)
        .block(piece.rows, piece.cols);
  }

  /// Calls copy(loops, packed, place) for boxes that together make up this rank's block of X: loops run from
  /// `packed` in of_X's memory to `place` in the block.
  template <class Copy>
  void for_each_box(const ConstDistMatrix<T>& X, Copy&& copy) const {
    const Index stride = X.local().stride;
    for (int rank = 0; rank < cyclic.grid.size(); ++rank) {
      const DealtBlock dealt = block_of(cyclic, rank);
      const Piece& piece = of_X.pieces[at(rank)];
      const Index height = piece.rows.size;
      for (const Blocks& cols : dealt.cols.blocks_of(piece.cols)) {
        for (const Blocks& rows : dealt.rows.blocks_of(piece.rows)) {
          BoxLoops loops;
          loops.add(cols.count, cols.size * height, dealt.cols.round() * stride);
          loops.add(cols.size, height, stride);
          loops.add(rows.count, rows.size, dealt.rows.round());
          loops.add(rows.size, 1, 1);
          if (loops.size() == 0) continue;
          copy(
              loops,
              piece.offset + (rows.local - piece.rows.begin) + (cols.local - piece.cols.begin) * height,
              (rows.global - X.local_row_range().begin) + (cols.global - X.local_col_range().begin) * stride);
        }
      }
    }
  }
};

/// Finds the pieces and allocates memory for them, once all ranks have agreed (collective over comm).
template <Scalar T>
Exchange<T> prepare(Communicator& comm, const BlockCyclic& mine, const T* local, const ConstDistMatrix<T>& X,
                    bool to_cyclic) {
  Exchange<T> exchange{as_rank_0_says(comm, mine), {}, {}};
  const BlockCyclic& cyclic = exchange.cyclic;
  check_possible(cyclic, comm.size());
  const ProcessGrid& grid = *X.grid();
  const auto add = [&](Side<T>& side, int of_cyclic, int of_X) {
    const int row = of_X / grid.cols(), col = of_X % grid.cols();
    const bool is_piece = of_cyclic < cyclic.grid.size() && of_X < grid.shape().size() &&
                          (!to_cyclic || X.layout().owned_at(grid, row, col));
    if (!is_piece) return side.add({}, {});
    const DealtBlock dealt = block_of(cyclic, of_cyclic);
    side.add(dealt.rows.local_range(X.layout().row_range(grid, row, col)),
             dealt.cols.local_range(X.layout().col_range(grid, row, col)));
  };
  agree(comm, to_cyclic ? "to_block_cyclic" : "from_block_cyclic", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", X);
    const BlockCyclic& said = comm.rank() < cyclic.grid.size() ? mine : cyclic;  // others may differ
    agreement.on("its block-cyclic form", describe(said)).on("the type of its descriptor", said.type);
    check_mine(comm, mine.stride, cyclic, local, X);
    for (int other = 0; other < comm.size(); ++other) {
      add(exchange.of_cyclic, comm.rank(), other);
      add(exchange.of_X, other, comm.rank());
    }
    exchange.of_cyclic.reserve(grid.backend());
    exchange.of_X.reserve(grid.backend());
  });
  return exchange;
}

template <Scalar T>
void send_across(Communicator& comm, const Side<T>& from, const Side<T>& to) {
  comm.all_to_all_v(from.memory.span(), from.counts, to.memory.span(), to.counts);
}

}  // namespace

Index BlockCyclic::local_rows(int rank) const {
  return rank < grid.size() ? block_of(*this, rank).rows.count_below(rows) : 0;
}

Index BlockCyclic::local_cols(int rank) const {
  return rank < grid.size() ? block_of(*this, rank).cols.count_below(cols) : 0;
}

template <Scalar T>
void from_block_cyclic(Communicator& comm, const BlockCyclic& from, const T* local, DistMatrix<T>& X) {
  const TraceRegion region("from block-cyclic");
  const Exchange<T> exchange = prepare<T>(comm, from, local, X, false);
  const Kernels<T>& kernels = X.grid()->backend()->template kernels<T>();
  for (const Piece& piece : exchange.of_cyclic.pieces)
    if (piece.size() > 0) kernels.copy(exchange.within(local, piece), exchange.of_cyclic.packed(piece));
  send_across(comm, exchange.of_cyclic, exchange.of_X);
  exchange.for_each_box(X, [&](const BoxLoops& loops, Index packed, Index place) {
    kernels.arrays().add_box(T(1), exchange.of_X.memory.data() + packed, T(0), X.local().data + place, loops);
  });
}

template <Scalar T>
void to_block_cyclic(Communicator& comm, const ConstDistMatrix<T>& X, const BlockCyclic& to, T* local) {
  const TraceRegion region("to block-cyclic");
  const Exchange<T> exchange = prepare<T>(comm, to, local, X, true);
  const Kernels<T>& kernels = X.grid()->backend()->template kernels<T>();
  exchange.for_each_box(X, [&](BoxLoops& loops, Index packed, Index place) {
    std::swap(loops.from, loops.to);
    kernels.arrays().add_box(T(1), X.local().data + place, T(0), exchange.of_X.memory.data() + packed, loops);
  });
  send_across(comm, exchange.of_X, exchange.of_cyclic);
  for (const Piece& piece : exchange.of_cyclic.pieces)
    if (piece.size() > 0) kernels.copy(exchange.of_cyclic.packed(piece), exchange.within(local, piece));
}

#define GRIDLOPS_INSTANTIATE(T)                                                                 \
  template void from_block_cyclic(Communicator&, const BlockCyclic&, const T*, DistMatrix<T>&); \
  template void to_block_cyclic(Communicator&, const ConstDistMatrix<T>&, const BlockCyclic&, T*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
