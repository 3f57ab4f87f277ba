// SPDX-License-Identifier: BSD-3-Clause
#include "dist/redistribution.hpp"

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"

namespace gridlops {

namespace {

/// The part of a matrix that one rank sends to another, and its position in the exchanged arrays.
struct Piece {
  Range rows, cols;
  Index offset = 0;
  Index size() const { return rows.size * cols.size; }
};

struct Place {
  int row, col;
};
Place my_place(const ProcessGrid& grid) { return {grid.my_row(), grid.my_col()}; }

/// One piece per rank of the grid: the intersection of the block of the rank at `me` in `mine` with that
/// rank's block in `other`. Only canonical owners send.
std::vector<Piece> pieces_with(const ProcessGrid& grid, Place me, const Layout& mine, bool i_must_own,
                               const Layout& other, bool other_must_own) {
  const Range my_rows = mine.row_range(grid, me.row, me.col);
  const Range my_cols = mine.col_range(grid, me.row, me.col);
  const bool i_take_part = !i_must_own || mine.owned_at(grid, me.row, me.col);
  std::vector<Piece> pieces;
  Index offset = 0;
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      Piece piece{{}, {}, offset};
      if (i_take_part && (!other_must_own || other.owned_at(grid, row, col))) {
        piece.rows = intersect(my_rows, other.row_range(grid, row, col));
        piece.cols = intersect(my_cols, other.col_range(grid, row, col));
      }
      offset += piece.size();
      pieces.push_back(piece);
    }
  }
  return pieces;
}

std::vector<Piece> outgoing_pieces(const ProcessGrid& grid, Place me, const Layout& from, const Layout& to) {
  return pieces_with(grid, me, from, true, to, false);
}
std::vector<Piece> incoming_pieces(const ProcessGrid& grid, Place me, const Layout& from, const Layout& to) {
  return pieces_with(grid, me, to, false, from, true);
}

std::vector<Index> sizes_of(const std::vector<Piece>& pieces) {
  std::vector<Index> sizes;
  for (const Piece& piece : pieces) sizes.push_back(piece.size());
  return sizes;
}

Index total_size(const std::vector<Piece>& pieces) { return pieces.back().offset + pieces.back().size(); }

/// The piece within a local block that begins at (row_begin, col_begin) of the matrix.
template <class T>
MatrixView<T> within(MatrixView<T> local, Index row_begin, Index col_begin, const Piece& piece) {
  return local.block({piece.rows.begin - row_begin, piece.rows.size},
                     {piece.cols.begin - col_begin, piece.cols.size});
}

}  // namespace

RedistributionSizes redistribution_sizes(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                         int row, int col) {
  const std::vector<Piece> out = outgoing_pieces(grid, {row, col}, from, to);
  const std::vector<Piece> in = incoming_pieces(grid, {row, col}, from, to);
  return {total_size(out), total_size(in), out[at(Index{row} * grid.cols() + col)].size()};
}

RedistributionSizes own_redistribution_sizes(const ProcessGrid& grid, const Layout& from, const Layout& to) {
  return redistribution_sizes(grid, from, to, grid.my_row(), grid.my_col());
}

namespace {

/// The elements that one redistribution exchanges.
template <Scalar T>
class ExchangedElements {
 public:
  /// Throws OutOfMemory on this rank alone.
  void reserve(const ProcessGrid& grid, const Layout& from, const Layout& to) {
    const RedistributionSizes sizes = own_redistribution_sizes(grid, from, to);
    outgoing_.reserve(grid.backend(), sizes.outgoing);
    incoming_.reserve(grid.backend(), sizes.incoming);
  }
  operator RedistributionMemory<T>() const { return {outgoing_.data(), incoming_.data()}; }

 private:
  Buffer<T> outgoing_, incoming_;
};

}  // namespace

template <Scalar T>
void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to,
                  const RedistributionMemory<T>& memory) {
  const TraceRegion region("redistribute");
  const ProcessGrid& grid = *to.grid();
  const std::vector<Piece> out = outgoing_pieces(grid, my_place(grid), from.layout(), to.layout());
  const std::vector<Piece> in = incoming_pieces(grid, my_place(grid), from.layout(), to.layout());
  const Kernels<T>& kernels = grid.backend()->template kernels<T>();
  T *const outgoing = memory.outgoing, *const incoming = memory.incoming;
  for (const Piece& piece : out)
    kernels.copy(within(from.local(), from.local_row_range().begin, from.local_col_range().begin, piece),
                 MatrixView<T>(outgoing + piece.offset, piece.rows.size, piece.cols.size));
  grid.comm().all_to_all_v({outgoing, total_size(out)}, sizes_of(out), {incoming, total_size(in)},
                           sizes_of(in));
  for (const Piece& piece : in)
    kernels.add(alpha, MatrixView<const T>(incoming + piece.offset, piece.rows.size, piece.cols.size), beta,
                within(to.local(), to.local_row_range().begin, to.local_col_range().begin, piece));
}

template <Scalar T>
void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to) {
  const auto check = [&] {
    require<ShapeError>(from.grid() == to.grid() && from.rows() == to.rows() && from.cols() == to.cols(),
                        "a matrix that lies as ", from.layout().describe(), " cannot be redistributed to ",
                        to.layout().describe(), "; both must have one shape, on one grid");
  };
  if (to.grid() == nullptr || !to.grid()->is_member()) return check();
  const ProcessGrid& grid = *to.grid();
  ExchangedElements<T> memory;
  agree(grid.comm(), "redistribute", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", from);
    describe_matrix(agreement, "what it becomes", to);
    agreement.on("alpha", alpha).on("beta", beta);
    check();
    memory.reserve(grid, from.layout(), to.layout());
  });
  redistribute<T>(alpha, from, beta, to, memory);
}

namespace {

/// The part of the whole matrix that each rank of the grid owns, in the order in which one rank gathers them.
std::vector<Piece> owned_pieces(const ProcessGrid& grid, const Layout& layout) {
  std::vector<Piece> pieces;
  Index offset = 0;
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      Piece piece{{}, {}, offset};
      if (layout.owned_at(grid, row, col)) {
        piece.rows = layout.row_range(grid, row, col);
        piece.cols = layout.col_range(grid, row, col);
      }
      offset += piece.size();
      pieces.push_back(piece);
    }
  }
  return pieces;
}

}  // namespace

template <Scalar T>
std::vector<T> gather(const ConstDistMatrix<T>& X, int root) {
  const TraceRegion region("gather matrix");
  const ProcessGrid& grid = *X.grid();
  if (!grid.is_member()) return {};
  Backend& backend = *grid.backend();
  const Kernels<T>& kernels = backend.kernels<T>();
  const std::vector<Piece> pieces = owned_pieces(grid, X.layout());
  const bool at_root = grid.comm().rank() == root;
  Buffer<T> mine, parts, assembled;
  std::vector<T> whole;
  agree(grid.comm(), "gather", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", X);
    agreement.on("the root", root);
    if (X.owned()) mine = Buffer<T>(grid.backend(), X.local().size());
    if (!at_root) return;
    parts = Buffer<T>(grid.backend(), X.rows() * X.cols());
    assembled = Buffer<T>(grid.backend(), X.rows() * X.cols());
    whole.resize(static_cast<std::size_t>(X.rows() * X.cols()));
  });
  if (X.owned()) kernels.copy(X.local(), mine.matrix(X.local().rows, X.local().cols));
  grid.comm().gather_v(mine.span(), parts.span(), sizes_of(pieces), root);
  if (!at_root) return {};
  for (const Piece& piece : pieces)
    kernels.copy(MatrixView<const T>(parts.data() + piece.offset, piece.rows.size, piece.cols.size),
                 within(assembled.matrix(X.rows(), X.cols()), 0, 0, piece));
  backend.download(assembled.data(), whole.data(), assembled.size() * Index{sizeof(T)});
  return whole;
}

template <Scalar T>
void scatter(const std::vector<T>& whole, int root, DistMatrix<T>& X) {
  const TraceRegion region("scatter matrix");
  const ProcessGrid& grid = *X.grid();
  if (!grid.is_member()) return;
  Backend& backend = *grid.backend();
  const Kernels<T>& kernels = backend.kernels<T>();
  const bool at_root = grid.comm().rank() == root;
  Buffer<T> assembled, parts, mine;
  ExchangedElements<T> to_copies;
  agree(grid.comm(), "scatter", [&](Agreement& agreement) {
    describe_matrix(agreement, "the matrix", X);
    agreement.on("the root", root);
    require_here<ShapeError>(!at_root || static_cast<Index>(whole.size()) == X.rows() * X.cols(),
                             "an array of ", whole.size(), " elements cannot become a matrix of ", X.rows(),
                             " x ", X.cols());
    if (at_root) {
      assembled = Buffer<T>(grid.backend(), X.rows() * X.cols());
      parts = Buffer<T>(grid.backend(), assembled.size());
    }
    if (X.owned()) mine = Buffer<T>(grid.backend(), X.local().size());
    to_copies.reserve(grid, X.layout(), X.layout());
  });
  // The root sends the elements to the canonical owners, which send them on to the ranks with copies.
  const std::vector<Piece> pieces = owned_pieces(grid, X.layout());
  if (at_root) {
    backend.upload(whole.data(), assembled.data(), assembled.size() * Index{sizeof(T)});
    for (const Piece& piece : pieces)
      kernels.copy(within(MatrixView<const T>(assembled.matrix(X.rows(), X.cols())), 0, 0, piece),
                   MatrixView<T>(parts.data() + piece.offset, piece.rows.size, piece.cols.size));
  }
  grid.comm().scatter_v(parts.span(), sizes_of(pieces), mine.span(), root);
  if (X.owned()) kernels.copy(mine.matrix(X.local().rows, X.local().cols), X.local());
  redistribute<T>(T(1), X, T(0), X, to_copies);
}

#define GRIDLOPS_INSTANTIATE(T)                                                \
  template void redistribute(T, const ConstDistMatrix<T>&, T, DistMatrix<T>&); \
  template void redistribute(T, const ConstDistMatrix<T>&, T, DistMatrix<T>&,  \
                             const RedistributionMemory<T>&);                  \
  template std::vector<T> gather(const ConstDistMatrix<T>&, int);              \
  template void scatter(const std::vector<T>&, int, DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
