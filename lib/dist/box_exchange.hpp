// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/dims.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops {

/// What one rank of a communicator has of an array, and what it wants of it. Boxes that are had lie in
/// different places of the array; those that are wanted may overlap, and reach beyond the array.
struct BoxesOfRank {
  Box has;  // empty where another rank that has it sends it
  std::vector<Box> wants;
};

/// Brings boxes of arrays to the ranks that want them, and sums back what these make of them, in one
/// all_to_all_v either way. Each column of a block is an array in C order; blocks and wanted boxes have gaps
/// between columns, if any, and nowhere else.
template <Scalar T>
class BoxExchange {
 public:
  /// The boxes of all ranks of the communicator, in its order. Not collective. comm outlives this; it is null
  /// if this rank exchanges with itself only.
  BoxExchange(std::shared_ptr<Backend> backend, Communicator* comm, const std::vector<BoxesOfRank>& ranks);

  /// Makes room for so many columns. Not collective. Throws OutOfMemory on this rank alone.
  void reserve(Index columns) const;

  /// Sends what others want of this rank's block (collective). Work that does not touch the block can be done
  /// until finish_fetch() is called with what this returns.
  [[nodiscard]] Request start_fetch(MatrixView<const T> block) const;
  /// Elements of the wanted boxes that lie in the array ← α block + β element.
  void finish_fetch(Request request, T alpha, MatrixView<const T> block, T beta,
                    const std::vector<MatrixView<T>>& wanted) const;

  /// block ← block + α Σ over all ranks that want an element of what they have in its place (collective): the
  /// adjoint of fetching.
  void sum_back(T alpha, const std::vector<MatrixView<const T>>& wanted, MatrixView<T> block) const;

 private:
  /// What one rank sends another of one wanted box.
  struct Piece {
    Box box;
    std::size_t wanted = 0;  // which of the boxes that the receiver wants
    Index offset = 0;        // in the array that is exchanged, for one column
  };
  /// What crosses between this rank and each other; sizes are for one column.
  struct Side {
    std::vector<Piece> pieces;
    std::vector<Index> counts;
    Index total = 0;

    void add(std::vector<Piece> pieces_with_one_rank);
    std::vector<Index> counts_for(Index columns) const;
  };
  static std::vector<Piece> pieces_between(const BoxesOfRank& from, const BoxesOfRank& to);
  Request start(Buffer<T>& send, const Side& sent, Buffer<T>& receive, const Side& received,
                Index columns) const;

  std::shared_ptr<Backend> backend_;
  Communicator* comm_;
  BoxesOfRank mine_;
  Side out_, in_;
  std::vector<Piece> kept_;
  mutable Buffer<T> outgoing_, incoming_;
};

}  // namespace gridlops
