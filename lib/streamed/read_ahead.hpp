// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "gridlops/base/types.hpp"
#include "streamed/tile_file.hpp"

namespace gridlops {

/// Reads the slabs of a file, pieces of equal length, ahead of their use: in threads of its own, in their
/// order, and after the last again the first, into a ring of slots. One thread uses them.
class ReadAhead {
 public:
  struct Ring {
    std::byte* memory = nullptr;   ///< aligned to TileFile::block
    Index slots = 0;               ///< at least 2
    Index slab_bytes = 0;          ///< a multiple of TileFile::block
    std::vector<Index> offsets{};  ///< of the slabs in the file, multiples of TileFile::block; at least one
  };

  /// The file and the memory must outlive it. `check` is called, in some thread, with each slab that has been
  /// read, and may throw.
  ReadAhead(const TileFile& file, Ring ring, std::function<void(Index slab, const std::byte*)> check);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Begins a pass over the slabs, from the first on. If the last pass ended before the last slab, what was
  /// read in vain is read again.
  void begin_pass();
  /// Slab k, once it is there; no earlier than those before it. Throws what reading or `check` threw.
  const std::byte* get(Index k);
  /// Slabs before k are no longer used in this pass: others may take their memory.
  void release_before(Index k);

  Index bytes_read() const;
  /// The time that get() has waited.
  double seconds_waited() const { return seconds_waited_; }

 private:
  struct Slot {
    Index left = 0;  ///< pieces that have not been read
    std::exception_ptr failure{};
  };

  void run(const std::stop_token& stop);
  Index slabs() const { return std::ssize(ring_.offsets); }
  Slot& slot_of(Index turn) { return slots_[static_cast<std::size_t>(turn % ring_.slots)]; }
  std::byte* memory_of(Index turn) const { return ring_.memory + turn % ring_.slots * ring_.slab_bytes; }

  const TileFile& file_;
  const Ring ring_;
  const Index pieces_;  // of a slab
  const std::function<void(Index, const std::byte*)> check_;

  // Turn t reads slab t modulo the number of slabs.
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;
  Index pass_ = 0;    // the turn of slab 0 in this pass
  Index oldest_ = 0;  // the first turn whose slot is in use
  Index next_ = 0;    // the turn that is being begun, and its first piece that no thread has taken
  Index next_piece_ = 0;
  Index in_flight_ = 0;
  bool is_held_ = false;  // no thread may begin a piece
  bool has_failed_ = false;
  Index bytes_read_ = 0;
  double seconds_waited_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace gridlops
