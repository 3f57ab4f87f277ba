// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "comm/rank_parts.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

class ChainBroadcasts;

/// The largest number of elements in one MPI call, whose counts are ints. Longer operands travel in chunks.
extern const Index max_message_elements;

/// An MPI communicator, with what the text of an error needs.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  bool is_watched = false;  ///< all its ranks are of a session with a limit

  /// Throws CommunicationError with the call, this rank and MPI's own text unless code is MPI_SUCCESS.
  void check(int code, const char* call, Index count) const;
  /// Returns when all ranks have called it.
  void await_all() const;
};

/// The lifetime of blocking calls of MPI that all ranks make. Ranks that are watched wait for each other
/// first, where they poll. In the calls nothing does; a thread of the Watchdog finds that they last for
/// longer than GRIDLOPS_TIMEOUT seconds.
class BlockingCall {
 public:
  explicit BlockingCall(const MpiGroup& group) {
    if (!group.is_watched) return;
    group.await_all();
    number_.store(++calls_, std::memory_order_release);
  }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;
  ~BlockingCall() { number_.store(0, std::memory_order_release); }

  /// Of the one that is under way, or 0. Any thread may ask.
  static std::uint64_t number() { return number_.load(std::memory_order_acquire); }

 private:
  static inline std::atomic<std::uint64_t> number_ = 0;
  static inline std::uint64_t calls_ = 0;
};

MPI_Datatype mpi_type(ElementType type);
MPI_Op mpi_op(ReduceOp op);

/// Copies as many elements as both arrays have; does nothing if they are the same array.
void copy(const ConstElements& from, const Elements& to);

/// Calls action(begin, count) for the chunks that `total` elements travel in.
template <class Action>
void for_each_chunk(Index total, Action&& action) {
  for (Index begin = 0; begin < total; begin += max_message_elements) {
    action(begin, static_cast<int>(std::min(max_message_elements, total - begin)));
  }
}

/// Several MPI requests under way, and perhaps a last step on this rank alone. No message waits for that
/// step, so ranks may complete operations in different orders, or do something else first.
class MpiTransfer final : public PendingOperation {
 public:
  /// While it waits, the chain broadcasts, if there are any, make progress.
  MpiTransfer(const MpiGroup& group, ChainBroadcasts* chains) : group_(group), chains_(chains) {}
  ~MpiTransfer() override;
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  /// Makes a non-blocking MPI call by begin(request). Errors, now or at completion, name it `call`.
  template <class Begin>
  void start(const char* call, int count, Begin&& begin) {
    Part& part = parts_.emplace_back(Part{.call = call, .count = count});
    group_.check(begin(&part.request), call, count);
  }
  /// Send and receive arrays of reals, in chunks. For an empty array nothing is sent.
  void send(const ConstElements& data, int destination, int tag);
  void receive(const Elements& data, int source, int tag);

  /// Memory that lives as long as the transfer.
  void* scratch(Index bytes);
  int* scratch_ints(int count) { return static_cast<int*>(scratch(count * Index{sizeof(int)})); }

  /// Sets the last step, for when all requests are complete. It must not communicate.
  void then(std::function<void()> last_step) { last_step_ = std::move(last_step); }

  bool is_complete() const { return parts_.empty() && last_step_ == nullptr; }
  void wait() override;
  bool test() override;

 private:
  struct Part {
    MPI_Request request = MPI_REQUEST_NULL;
    const char* call = "";
    int count = 0;
    int source = -1;  ///< of a receive, which must get `count` elements of `type`
    MPI_Datatype type = MPI_BYTE;
  };

  void check(const Part& part, int code, const MPI_Status& status) const;
  void complete();

  MpiGroup group_;
  ChainBroadcasts* chains_;
  std::vector<Part> parts_;
  std::size_t parts_done_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::function<void()> last_step_;
};

}  // namespace gridlops
