// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/trace_record.hpp"
#include "comm/failure/flight_recorder.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// Adds its own lifetime to the time that a rank waited.
class WaitingTime {
 public:
  using Clock = OperationRecord::Clock;

  explicit WaitingTime(Traffic& traffic, Clock::time_point begin = Clock::now())
      : traffic_(traffic), begin_(begin) {}
  WaitingTime(const WaitingTime&) = delete;
  WaitingTime& operator=(const WaitingTime&) = delete;
  ~WaitingTime() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
    traffic_.seconds_waiting += seconds;
    if (OperationRegion::counts()) trace_counts({.seconds_waiting = seconds});
  }

 private:
  Traffic& traffic_;
  Clock::time_point begin_;
};

/// Counts the bytes sent during its lifetime separately, and the time as waiting.
class AgreementAccount {
 public:
  explicit AgreementAccount(Communicator& comm)
      : region_("agree"),
        is_agreeing_(comm.is_agreeing_),
        was_agreeing_(std::exchange(comm.is_agreeing_, true)),
        traffic_(*comm.traffic_),
        before_(traffic_),
        time_(traffic_) {}
  AgreementAccount(const AgreementAccount&) = delete;
  AgreementAccount& operator=(const AgreementAccount&) = delete;
  ~AgreementAccount() {
    Traffic after = before_;
    after.agreement_bytes += traffic_.bytes_sent - before_.bytes_sent;
    ++after.agreements;
    traffic_ = after;
    is_agreeing_ = was_agreeing_;
  }

 private:
  const OperationRegion region_;
  bool& is_agreeing_;
  const bool was_agreeing_;
  Traffic& traffic_;
  const Traffic before_;
  const WaitingTime time_;
};

/// Does everything that a call of a communicator's operation does besides moving data. The function with the
/// operation's name checks the arguments (UsageError), counts the payload by the rules of Traffic, and
/// records the operation as the one in progress. complete() or start() then carries it out. A trace has a
/// region from that function until this object is destroyed.
///
/// With GRIDLOPS_CHECK=all the ranks first agree on the arguments of a blocking collective operation, and on
/// the outcome of their checks. Non-blocking operations remain non-blocking, and do not agree.
class CallAccount {
 public:
  explicit CallAccount(Communicator& comm,
                       Communicator::Completion completion = Communicator::Completion::pending);

  CallAccount& split(std::optional<int> color);
  CallAccount& barrier();
  CallAccount& broadcast(const ConstElements& data, int root);
  CallAccount& reduce(const ConstElements& in, const ConstElements& out, ReduceOp op, int root,
                      ReductionOrder order);
  CallAccount& all_reduce(const ConstElements& data, ReduceOp op, ReductionOrder order);
  CallAccount& gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts,
                      int root);
  CallAccount& scatter(const ConstElements& all, std::span<const Index> counts, const ConstElements& mine,
                       int root);
  CallAccount& all_gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts);
  CallAccount& reduce_scatter(const ConstElements& all, std::span<const Index> counts,
                              const ConstElements& mine, ReduceOp op, ReductionOrder order);
  CallAccount& all_to_all(const ConstElements& send, std::span<const Index> send_counts,
                          const ConstElements& receive, std::span<const Index> receive_counts);
  CallAccount& send(const ConstElements& data, int destination, int tag);
  CallAccount& receive(const ConstElements& data, int source, int tag);
  CallAccount& send_receive(const ConstElements& out, int destination, const ConstElements& in, int source,
                            int tag);

  /// Carries out a whole operation by begin(Completion).
  template <class Begin>
  void complete(Begin&& begin) {
    const WaitingTime time(traffic_, flight_recorder().last().begin);
    flight_recorder().set_state(OperationRecord::State::running);
    if (const Communicator::Pending pending = begin(Communicator::Completion::blocking)) pending->wait();
    returned();
  }
  /// Begins an operation by begin(Completion).
  template <class Begin>
  Request start(Begin&& begin) {
    Communicator::Pending pending = begin(Communicator::Completion::pending);
    returned();
    return request(std::move(pending));
  }
  static void returned() { flight_recorder().set_state(OperationRecord::State::returned); }

  // Transports that read other ranks' memory call these to count it.

  /// Counts a get in progress of this many bytes from another rank.
  Request start_get(std::unique_ptr<PendingOperation> pending, Index bytes);
  /// Counts this many bytes read in place.
  void count_read(Index bytes);
  Traffic& traffic() { return traffic_; }

 private:
  template <class Check>
  void check(CommOperation operation, Check&& arguments);
  CallAccount& enter(CommOperation operation, Index sent, Index received, Index operand_bytes, int peer = -1);
  void count(CommOperation operation, Index sent, Index received);
  Request request(Communicator::Pending pending) const;
  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }

  Communicator& comm_;
  Traffic& traffic_;
  const bool compares_;
  const char* name_ = nullptr;  // the last operation counted
  std::optional<OperationRegion> region_;
};

}  // namespace gridlops
