// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/shared_memory.hpp"

namespace gridlops {

/// Returns all ranks' addresses, by rank (collective over comm).
std::vector<SharedAddress> gather_addresses(Communicator& comm, const SharedAddress& mine);

/// The shared memory of the other ranks of a machine, at addresses of this process.
class PeerMemory {
 public:
  /// Collective over comm.
  explicit PeerMemory(Communicator& comm);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// Returns the address in this process at which `rank`'s memory can be read. Maps the file at first use,
  /// and again when it has grown, and keeps it mapped. Throws CommunicationError if that is impossible.
  const std::byte* at(int rank, const SharedAddress& address);

 private:
  struct Mapping {
    Index serial = 0;
    const void* memory = nullptr;
    std::size_t bytes = 0;
  };

  std::vector<Index> processes_;
  std::vector<std::vector<Mapping>> mappings_;  // by rank
};

/// Blocks that the ranks of one machine publish to each other, round by round, for the others to read in
/// place. There are no messages: each rank writes its own flags, and the others poll them. All ranks go
/// through the same rounds in the same order. In a round a rank publishes one block, reads blocks of others,
/// and says that it has finished reading. It must leave its block unchanged until all ranks that may read it
/// have said so, and must wait for that before it publishes another block two rounds later.
class SharedWindow {
 public:
  /// Collective over comm, which must outlive this. Throws the same error on all ranks if they cannot read
  /// each other's memory.
  explicit SharedWindow(Communicator& comm);
  ~SharedWindow();
  SharedWindow(const SharedWindow&) = delete;
  SharedWindow& operator=(const SharedWindow&) = delete;

  using Round = std::uint64_t;

  /// Begins the next round with this rank's block, which must be in memory of the backend that others can
  /// map; an empty block may be anywhere. Throws UsageError for memory that is not shared.
  template <class T>
  Round publish(const Backend& backend, MatrixView<const T> block) {
    return publish(block.empty() ? SharedAddress{} : address_in(backend, block.data), block.rows, block.cols,
                   block.stride);
  }

  /// Returns the block that `rank` publishes in this round; waits until it is published.
  template <class T>
  MatrixView<const T> block_of(int rank) {
    const Published& block = wait_for_block(rank);
    const auto* data = block.rows * block.cols == 0 ? nullptr : memory_.at(rank, block.address);
    return {reinterpret_cast<const T*>(data), block.rows, block.cols, block.stride};
  }

  /// Counts bytes that this rank reads from others' blocks.
  void count_read(Index bytes);

  /// Says that this rank reads nothing more in this round.
  void finish_reading();
  /// Returns when `rank` has finished reading in a round.
  void wait_for_reader(int rank, Round round);

 private:
  struct Published {
    SharedAddress address;
    Index rows = 0, cols = 0, stride = 0;
  };
  /// The page that one rank writes and the others read. Each of the two flags has a cache line of its own.
  struct Page {
    int owner;                                    // this rank; readers of the page check it
    alignas(64) std::atomic<Round> published{0};  // the last round that has a block
    alignas(64) std::atomic<Round> read{0};       // the last round that this rank has finished
    alignas(64) Published blocks[2]{};            // of even rounds, and of odd ones
  };

  static Index page_bytes();
  void wait_for(const std::atomic<Round>& flag, Round round, int rank) const;
  static SharedAddress address_in(const Backend& backend, const void* data);
  Round publish(const SharedAddress& address, Index rows, Index cols, Index stride);
  const Published& wait_for_block(int rank);

  Communicator& comm_;
  PeerMemory memory_;
  Page* mine_ = nullptr;
  std::vector<const Page*> pages_;
  Round round_ = 0;
};

/// The one window of a communicator whose transport is "shared" (collective over it at the first call).
SharedWindow& shared_window_of(Communicator& comm);

}  // namespace gridlops
