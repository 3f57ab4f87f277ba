// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/dist/dims.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops {

/// The part of an array that one rank of a communicator has, and the parts that it wants. Boxes of different
/// ranks' `has` do not overlap; wanted boxes may overlap, and may reach beyond the array.
struct BoxesOfRank {
  Box has;  // empty if another rank that has it sends it
  std::vector<Box> wants;
};

/// Brings boxes of arrays to the ranks that want them, and sums back the values that these compute for them,
/// with one all_to_all_v in each direction. Each column of a block is an array in C order. Blocks and wanted
/// boxes may have gaps between columns only.
template <Scalar T>
class BoxExchange {
 public:
  /// `boxes` are those of all ranks of the communicator, in its order. Not collective. comm must outlive this
  /// object; it is null if this rank exchanges only with itself.
  BoxExchange(std::shared_ptr<Backend> backend, Communicator* comm, const std::vector<BoxesOfRank>& ranks);

  /// How many elements an exchange of this many columns needs as `memory`: what this rank sends and receives.
  Index memory_size(Index columns) const { return (out_.total + in_.total) * columns; }

  /// Sends the parts of this rank's block that others want (collective). Until the caller passes the request
  /// to finish_fetch(), with the same memory, it may do work that touches neither the memory nor the block.
  [[nodiscard]] Request start_fetch(MatrixView<const T> block, T* memory) const;
  /// Elements of the wanted boxes that lie in the array ← α block + β element.
  void finish_fetch(Request request, T alpha, MatrixView<const T> block, T beta,
                    const std::vector<MatrixView<T>>& wanted, T* memory) const;

  /// block ← block + α Σ over all ranks of their values for an element that they want (collective): the
  /// adjoint of fetching.
  void sum_back(T alpha, const std::vector<MatrixView<const T>>& wanted, MatrixView<T> block,
                T* memory) const;

 private:
  /// The part of one wanted box that one rank sends another.
  struct Piece {
    Box box;
    std::size_t wanted = 0;  // the index of the box among those that the receiver wants
    Index offset = 0;        // in the exchanged array, for one column
  };
  /// The exchange between this rank and each other rank; sizes are for one column.
  struct Side {
    std::vector<Piece> pieces;
    std::vector<Index> counts;
    Index total = 0;

    void add(std::vector<Piece> pieces_with_one_rank);
    std::vector<Index> counts_for(Index columns) const;
  };
  static std::vector<Piece> pieces_between(const BoxesOfRank& from, const BoxesOfRank& to);
  Request start(const T* send, const Side& sent, T* receive, const Side& received, Index columns) const;
  T* incoming(T* memory, Index columns) const { return memory + out_.total * columns; }

  std::shared_ptr<Backend> backend_;
  Communicator* comm_;
  BoxesOfRank mine_;
  Side out_, in_;
  std::vector<Piece> kept_;
};

}  // namespace gridlops
