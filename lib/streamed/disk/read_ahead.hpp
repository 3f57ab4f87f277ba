// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/base/types.hpp"
#include "streamed/disk/part_source.hpp"

namespace gridlops {

/// Reads parts ahead of their use: in threads of its own, in the order of the passes over them, into a ring
/// of slots. One thread uses them.
class ReadAhead {
 public:
  /// Of a pass: the numbers of the parts that are used one after the other, and the pass for which is read
  /// ahead when all are read.
  struct Order {
    std::vector<Index> parts{};
    Index next = 0;
  };
  struct Ring {
    std::byte* memory = nullptr;   ///< aligned to DiskFile::block
    Index slots = 0;               ///< at least 2
    Index slot_bytes = 0;          ///< of the longest part, a multiple of DiskFile::block
    std::byte* staging = nullptr;  ///< of all threads, if the source takes some
    Index staging_each = 0;        ///< of a thread, a multiple of DiskFile::block
  };
  static constexpr int threads = 4;

  /// The source and the memory must outlive it. `check` is called, in some thread, with each part that has
  /// been read, and may throw. Reads for the first pass at once.
  ReadAhead(const PartSource& source, Ring ring, std::vector<Order> passes,
            std::function<void(Index number, const std::byte*)> check);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Begins a pass, from its first part on. If it is not the one that comes next, or the last pass ended
  /// before its last part, what was read in vain is read again.
  void begin_pass(Index pass);
  /// The k-th part of the pass, once it is there; no earlier than those before it. Throws what reading or
  /// `check` threw.
  const std::byte* get(Index k);
  /// The parts before the k-th are no longer used in this pass: others may take their memory.
  void release_before(Index k);

  Index bytes_read() const;
  /// The time that get() has waited.
  double seconds_waited() const { return seconds_waited_; }

 private:
  struct Slot {
    Index left = 0;  ///< pieces that have not been read
    std::exception_ptr failure{};
  };

  void run(const std::stop_token& stop, std::byte* staging);
  /// Waits until is_done(), of which changed_ tells, and says so if that takes long.
  template <class IsDone>
  void await(std::unique_lock<std::mutex>& lock, const IsDone& is_done, const std::string& for_what);
  /// Waits until no thread reads.
  void await_reads(std::unique_lock<std::mutex>& lock);
  void read_from(Index pass, Index k);
  Slot& slot_of(Index turn) { return slots_[at(turn % ring_.slots)]; }
  std::byte* memory_of(Index turn) const { return ring_.memory + turn % ring_.slots * ring_.slot_bytes; }

  const PartSource& source_;
  const Ring ring_;
  const std::vector<Order> passes_;
  const std::function<void(Index, const std::byte*)> check_;
  const std::string ending_;  // what may be waited for

  // Each part that is read takes a turn, and slots in turn.
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Slot> slots_;
  Index pass_ = 0;    // the pass of the user
  Index first_ = 0;   // the turn of its first part
  Index oldest_ = 0;  // the first turn whose slot is in use
  Index next_ = 0;    // the turn that is being begun: the part next_part_ of the pass next_pass_,
  Index next_pass_ = 0, next_part_ = 0;
  Index next_piece_ = 0;   // from this piece on
  bool has_next_ = false;  // there is such a part
  bool is_held_ = false;   // no thread may begin a piece
  Index in_flight_ = 0;
  bool has_failed_ = false;
  Index bytes_read_ = 0;
  double seconds_waited_ = 0;
  std::vector<std::jthread> threads_;
};

}  // namespace gridlops
