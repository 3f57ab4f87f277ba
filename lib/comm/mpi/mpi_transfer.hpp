// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/at_work.hpp"
#include "comm/rank_parts.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// The largest number of elements in one MPI call, whose counts are ints. Longer operands travel in chunks.
extern const Index max_message_elements;

/// An MPI communicator, with the facts that error messages need.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;
  bool is_watched = false;  ///< all its ranks belong to a session with a limit

  static MpiGroup of(MPI_Comm comm, bool is_watched);
  /// Throws CommunicationError with the call, this rank and MPI's own text unless code is MPI_SUCCESS.
  void check(int code, const char* call, Index count) const;
  /// Makes a non-blocking MPI call, begin(arguments…, request), and waits until it is complete.
  template <class Begin, class... Arguments>
  void await(const char* name, int count, Begin&& begin, const Arguments&... arguments) const;
};

/// Lives during blocking MPI calls that all ranks make. The library makes no others (tests/rules/waits.py).
/// Watched ranks first wait for each other by polling. The calls themselves do not poll; a thread of the
/// Watchdog notices if one lasts longer than GRIDLOPS_TIMEOUT seconds.
class BlockingCall {
 public:
  explicit BlockingCall(const MpiGroup& group);

  /// Makes one call, call(arguments…). Errors name it `name`.
  template <class Call, class... Arguments>
  void run(const char* name, Index count, Call&& call, const Arguments&... arguments) const {
    group_.check(call(arguments...), name, count);
  }

 private:
  const MpiGroup& group_;
  std::optional<Away> away_;
};

/// Copies as many elements as both arrays have; does nothing if they are the same array.
void copy(const ConstElements& from, const Elements& to);

/// Calls action(begin, count) for each chunk in which `total` elements travel.
template <class Action>
void for_each_chunk(Index total, Action&& action) {
  for (Index begin = 0; begin < total; begin += max_message_elements) {
    action(begin, static_cast<int>(std::min(max_message_elements, total - begin)));
  }
}

/// Ends requests whose operands are about to be destroyed. They get a second to complete, which is enough if
/// all ranks throw the same error. Then it cancels receives. If other requests remain, MPI could still use
/// memory that then has another owner. So this rank makes no further MPI call, its next communication throws,
/// and without a Watchdog the job ends here. Returns false if requests remain.
bool let_go(std::span<MPI_Request> receives, std::span<MPI_Request> others) noexcept;

/// Several MPI requests in progress, and possibly a last step on this rank alone. No message depends on that
/// step, so ranks may complete operations in different orders, or do something else first.
class MpiTransfer : public PendingOperation {
 public:
  explicit MpiTransfer(const MpiGroup& group) : group_(group) {}
  /// If requests remain, after an error or while an exception unwinds the stack, their operands may soon be
  /// gone: see let_go().
  ~MpiTransfer() override;
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;

  /// Makes a non-blocking MPI call, begin(arguments…, request). Errors, now or at completion, name it `name`.
  template <class Begin, class... Arguments>
  void start(const char* name, int count, Begin&& begin, const Arguments&... arguments) {
    StartedCall& started = calls_.emplace_back(StartedCall{.call = name, .count = count});
    group_.check(begin(arguments..., &started.request), name, count);
  }
  /// Makes the non-blocking call, or the blocking call(arguments…) if the operation is within a BlockingCall.
  template <class Call, class Begin, class... Arguments>
  void carry_out(const std::optional<BlockingCall>& blocking, const char* name, int count, Call&& call,
                 Begin&& begin, const Arguments&... arguments) {
    if (blocking) {
      blocking->run(name, count, call, arguments...);
    } else {
      start(name, count, begin, arguments...);
    }
  }
  /// Send and receive arrays of reals, in chunks. An empty array sends nothing.
  void send(const ConstElements& data, int destination, int tag);
  void receive(const Elements& data, int source, int tag);

  /// Memory that lives as long as the transfer.
  void* scratch(Index bytes);
  int* scratch_ints(int count) { return static_cast<int*>(scratch(count * Index{sizeof(int)})); }

  /// Sets the last step, for when all requests are complete. It must not communicate.
  void then(std::function<void()> last_step) { last_step_ = std::move(last_step); }

  bool is_complete() const { return calls_.empty() && last_step_ == nullptr; }
  void wait() override;
  bool test() override;

 private:
  struct StartedCall {
    MPI_Request request = MPI_REQUEST_NULL;
    const char* call = "";
    int count = 0;
    int source = -1;  ///< of a receive, which must get `count` elements of `type`
    MPI_Datatype type = MPI_BYTE;
  };

  void check(const StartedCall& started, int code, const MPI_Status& status) const;
  void complete();

  MpiGroup group_;
  std::vector<StartedCall> calls_;
  std::size_t calls_done_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> scratch_;
  std::function<void()> last_step_;
};

template <class Begin, class... Arguments>
void MpiGroup::await(const char* name, int count, Begin&& begin, const Arguments&... arguments) const {
  MpiTransfer transfer(*this);
  transfer.start(name, count, begin, arguments...);
  transfer.wait();
}

}  // namespace gridlops
