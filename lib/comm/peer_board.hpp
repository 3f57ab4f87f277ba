// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "comm/peer_memory.hpp"
#include "gridlops/matrix_view.hpp"

namespace gridlops {

/// Where the ranks of one machine show each other blocks to be read in place, round by round, without
/// messages: each rank writes flags of its own, which the others wait for. All ranks go through the same
/// rounds in the same order. In a round a rank shows one block, reads what others show, and says that it is
/// done reading. Its own block must stay as it is until those that may read it have said so, which it must
/// have awaited before it shows another one two rounds later.
class PeerBoard {
 public:
  /// Collective over comm, which must outlive this. Throws alike on all ranks where they cannot read each
  /// other's memory.
  explicit PeerBoard(Communicator& comm);
  ~PeerBoard();
  PeerBoard(const PeerBoard&) = delete;
  PeerBoard& operator=(const PeerBoard&) = delete;

  using Round = std::uint64_t;

  /// Begins the next round with a block of this rank's, in memory of the backend that others can map; an
  /// empty one may be anywhere.
  template <class T>
  Round show(const Backend& backend, MatrixView<const T> block) {
    return show_place(block.size() == 0 ? SharedPlace{} : place_in(backend, block.data), block.rows,
                      block.cols, block.stride);
  }

  /// The block that `rank` shows in this round, as soon as it does.
  template <class T>
  MatrixView<const T> block_of(int rank) {
    const Shown& shown = await_shown(rank);
    const auto* data = shown.rows * shown.cols == 0 ? nullptr : memory_.at(rank, shown.place);
    return {reinterpret_cast<const T*>(data), shown.rows, shown.cols, shown.stride};
  }

  /// This rank reads nothing more in this round.
  void done_reading();
  /// Returns when `rank` has read all that it wants of a round.
  void await_reader(int rank, Round round);

 private:
  struct Shown {
    SharedPlace place;
    Index rows = 0, cols = 0, stride = 0;
  };
  /// What a rank writes and the others read. The two flags lie on cache lines of their own.
  struct Page {
    alignas(64) std::atomic<Round> shown{0};  // the last round that there is a block of
    alignas(64) std::atomic<Round> read{0};   // the last round that is done with
    alignas(64) Shown blocks[2];              // of even rounds, and of odd ones
  };

  static Index page_bytes();
  /// Returns when the flag has reached the round.
  void await(const std::atomic<Round>& flag, Round round, int rank) const;
  static SharedPlace place_in(const Backend& backend, const void* data);
  Round show_place(const SharedPlace& place, Index rows, Index cols, Index stride);
  const Shown& await_shown(int rank);

  Communicator& comm_;
  PeerMemory memory_;
  Page* mine_ = nullptr;
  std::vector<const Page*> pages_;
  Round round_ = 0;
};

/// The board of a communicator whose transport is "shared", for all that its ranks show each other.
/// Collective over it at the first call.
PeerBoard& board_of(Communicator& comm);

}  // namespace gridlops
