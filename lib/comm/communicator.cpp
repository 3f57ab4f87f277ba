// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/comm/communicator.hpp"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "comm/failure/call_account.hpp"
#include "comm/failure/watched_wait.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

std::vector<Index> equal_counts(int size, Index count) {
  return std::vector<Index>(static_cast<std::size_t>(size), count);
}

}  // namespace

const char* name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return "sum";
    case ReduceOp::prod:
      return "prod";
    case ReduceOp::min:
      return "min";
    case ReduceOp::max:
      break;
  }
  return "max";
}

Communicator::Communicator(int rank, int size, std::shared_ptr<Traffic> traffic)
    : rank_(rank), size_(size), traffic_(std::move(traffic)) {}

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> Communicator::split(std::optional<int> color, int key) {
  CallAccount call(*this, Completion::blocking);
  call.split(color);
  std::unique_ptr<Communicator> child = do_split(color, key);
  CallAccount::returned();
  return child;
}

void Communicator::barrier() {
  CallAccount(*this, Completion::blocking).barrier().complete([&](auto completion) {
    return do_barrier(completion);
  });
}

Request Communicator::start_barrier() {
  return CallAccount(*this).barrier().start([&](auto completion) { return do_barrier(completion); });
}

void Communicator::broadcast(Elements data, int root) {
  CallAccount(*this, Completion::blocking).broadcast(data, root).complete([&](auto completion) {
    return do_broadcast(data, root, completion);
  });
}

Request Communicator::start_broadcast(Elements data, int root) {
  return CallAccount(*this).broadcast(data, root).start([&](auto completion) {
    return do_broadcast(data, root, completion);
  });
}

void Communicator::reduce(ConstElements in, Elements out, ReduceOp op, int root, ReductionOrder order) {
  CallAccount(*this, Completion::blocking).reduce(in, out, op, root, order).complete([&](auto completion) {
    return do_reduce(in, out, op, root, order, completion);
  });
}

Request Communicator::start_reduce(ConstElements in, Elements out, ReduceOp op, int root,
                                   ReductionOrder order) {
  return CallAccount(*this).reduce(in, out, op, root, order).start([&](auto completion) {
    return do_reduce(in, out, op, root, order, completion);
  });
}

void Communicator::all_reduce(Elements data, ReduceOp op, ReductionOrder order) {
  CallAccount(*this, Completion::blocking).all_reduce(data, op, order).complete([&](auto completion) {
    return do_all_reduce(data, op, order, completion);
  });
}

Request Communicator::start_all_reduce(Elements data, ReduceOp op, ReductionOrder order) {
  return CallAccount(*this).all_reduce(data, op, order).start([&](auto completion) {
    return do_all_reduce(data, op, order, completion);
  });
}

void Communicator::gather(ConstElements mine, Elements all, int root) {
  gather_v(mine, all, equal_counts(size_, mine.count), root);
}

void Communicator::gather_v(ConstElements mine, Elements all, std::span<const Index> counts, int root) {
  CallAccount(*this, Completion::blocking).gather(mine, all, counts, root).complete([&](auto completion) {
    return do_gather(mine, all, counts, root, completion);
  });
}

Request Communicator::start_gather_v(ConstElements mine, Elements all, std::span<const Index> counts,
                                     int root) {
  return CallAccount(*this).gather(mine, all, counts, root).start([&](auto completion) {
    return do_gather(mine, all, counts, root, completion);
  });
}

void Communicator::scatter(ConstElements all, Elements mine, int root) {
  scatter_v(all, equal_counts(size_, mine.count), mine, root);
}

void Communicator::scatter_v(ConstElements all, std::span<const Index> counts, Elements mine, int root) {
  CallAccount(*this, Completion::blocking).scatter(all, counts, mine, root).complete([&](auto completion) {
    return do_scatter(all, counts, mine, root, completion);
  });
}

Request Communicator::start_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                      int root) {
  return CallAccount(*this).scatter(all, counts, mine, root).start([&](auto completion) {
    return do_scatter(all, counts, mine, root, completion);
  });
}

void Communicator::all_gather(ConstElements mine, Elements all) {
  all_gather_v(mine, all, equal_counts(size_, mine.count));
}

void Communicator::all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts) {
  CallAccount(*this, Completion::blocking).all_gather(mine, all, counts).complete([&](auto completion) {
    return do_all_gather(mine, all, counts, completion);
  });
}

Request Communicator::start_all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts) {
  return CallAccount(*this).all_gather(mine, all, counts).start([&](auto completion) {
    return do_all_gather(mine, all, counts, completion);
  });
}

void Communicator::reduce_scatter(ConstElements all, Elements mine, ReduceOp op, ReductionOrder order) {
  reduce_scatter_v(all, equal_counts(size_, mine.count), mine, op, order);
}

void Communicator::reduce_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                    ReduceOp op, ReductionOrder order) {
  CallAccount(*this, Completion::blocking)
      .reduce_scatter(all, counts, mine, op, order)
      .complete([&](auto completion) { return do_reduce_scatter(all, counts, mine, op, order, completion); });
}

Request Communicator::start_reduce_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                             ReduceOp op, ReductionOrder order) {
  return CallAccount(*this).reduce_scatter(all, counts, mine, op, order).start([&](auto completion) {
    return do_reduce_scatter(all, counts, mine, op, order, completion);
  });
}

void Communicator::all_to_all(ConstElements send, Elements receive) {
  require_here<UsageError>(
      send.count % size_ == 0, "all_to_all: ", send.count, " elements cannot be cut into ", size_,
      " equal parts, one for each rank; use all_to_all_v for parts of different lengths");
  const auto counts = equal_counts(size_, send.count / size_);
  all_to_all_v(send, counts, receive, counts);
}

void Communicator::all_to_all_v(ConstElements send, std::span<const Index> send_counts, Elements receive,
                                std::span<const Index> receive_counts) {
  CallAccount(*this, Completion::blocking)
      .all_to_all(send, send_counts, receive, receive_counts)
      .complete([&](auto completion) {
        return do_all_to_all(send, send_counts, receive, receive_counts, completion);
      });
}

Request Communicator::start_all_to_all_v(ConstElements send, std::span<const Index> send_counts,
                                         Elements receive, std::span<const Index> receive_counts) {
  return CallAccount(*this)
      .all_to_all(send, send_counts, receive, receive_counts)
      .start([&](auto completion) {
        return do_all_to_all(send, send_counts, receive, receive_counts, completion);
      });
}

void Communicator::send(ConstElements data, int destination, int tag) {
  CallAccount(*this).send(data, destination, tag).complete([&](auto completion) {
    return do_send(data, destination, tag, completion);
  });
}

Request Communicator::start_send(ConstElements data, int destination, int tag) {
  return CallAccount(*this).send(data, destination, tag).start([&](auto completion) {
    return do_send(data, destination, tag, completion);
  });
}

void Communicator::receive(Elements data, int source, int tag) {
  CallAccount(*this).receive(data, source, tag).complete([&](auto completion) {
    return do_receive(data, source, tag, completion);
  });
}

Request Communicator::start_receive(Elements data, int source, int tag) {
  return CallAccount(*this).receive(data, source, tag).start([&](auto completion) {
    return do_receive(data, source, tag, completion);
  });
}

void Communicator::send_receive(ConstElements out, int destination, Elements in, int source, int tag) {
  Request incoming;
  {
    CallAccount call(*this);
    call.send_receive(out, destination, in, source, tag);
    incoming = call.start([&](auto completion) { return do_receive(in, source, tag, completion); });
    call.complete([&](auto completion) { return do_send(out, destination, tag, completion); });
  }
  incoming.wait();
}

PendingOperation::~PendingOperation() = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    drop();
    pending_ = std::move(other.pending_);
    traffic_ = std::move(other.traffic_);
    flight_ = other.flight_;
  }
  return *this;
}

Request::~Request() { drop(); }

void Request::wait() {
  if (pending_ == nullptr) return;
  flight_recorder().set_state(OperationRecord::State::waiting);
  {
    const OperationRegion region("wait");
    std::optional<WaitingTime> time;
    if (traffic_ != nullptr) time.emplace(*traffic_);
    pending_->wait();
  }
  complete();
  flight_recorder().set_state(OperationRecord::State::returned);
}

bool Request::test() {
  const OperationRegion region(nullptr);
  if (pending_ == nullptr) return true;
  if (pending_->test()) {
    complete();
    return true;
  }
  look_after_test();
  return false;
}

void Request::complete() {
  pending_.reset();
  trace_landing(flight_);
}

// The transport ensures that a pending operation, once destroyed, no longer uses its operands.
void Request::drop() noexcept {
  if (std::uncaught_exceptions() == 0) wait();
  pending_.reset();
}

CommunicationGroup::CommunicationGroup(Communicator& comm) : comm_(comm) { comm_.do_open_group(); }

// An error here ends the program, as in any destructor. close() throws it instead.
CommunicationGroup::~CommunicationGroup() {
  if (!is_open_) return;
  if (std::uncaught_exceptions() > 0) {
    comm_.do_abandon_group();
  } else {
    comm_.do_close_group();
  }
}

void CommunicationGroup::close() {
  is_open_ = false;
  comm_.do_close_group();
}

}  // namespace gridlops
