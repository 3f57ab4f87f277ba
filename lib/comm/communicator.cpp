// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/communicator.hpp"

#include <utility>
#include <vector>

#include "base/message.hpp"
#include "comm/door.hpp"
#include "comm/waiting_time.hpp"

namespace gridlops {

namespace {

std::vector<Index> equal_counts(int size, Index count) {
  return std::vector<Index>(static_cast<std::size_t>(size), count);
}

void note_return() { last_operation().state = OperationRecord::State::returned; }

/// A blocking operation, from its beginning to its end.
template <class Begin>
void complete(Traffic& account, Begin&& begin) {
  const WaitingTime time(account);
  if (const std::unique_ptr<PendingOperation> pending = begin()) pending->wait();
  note_return();
}

Request started(std::unique_ptr<PendingOperation> pending, const std::shared_ptr<Traffic>& account) {
  note_return();
  return Request(std::move(pending), account);
}

}  // namespace

Communicator::Communicator(int rank, int size, std::shared_ptr<Traffic> traffic)
    : rank_(rank), size_(size), traffic_(std::move(traffic)) {}

Communicator::~Communicator() = default;

std::unique_ptr<Communicator> Communicator::split(std::optional<int> color, int key) {
  Door(rank_, size_, *traffic_).split(color);
  std::unique_ptr<Communicator> child = do_split(color, key);
  note_return();
  return child;
}

void Communicator::barrier() {
  Door(rank_, size_, *traffic_).barrier();
  complete(*traffic_, [&] { return do_barrier(Completion::blocking); });
}

Request Communicator::start_barrier() {
  Door(rank_, size_, *traffic_).barrier();
  return started(do_barrier(Completion::pending), traffic_);
}

void Communicator::broadcast(Elements data, int root) {
  Door(rank_, size_, *traffic_).broadcast(data, root);
  complete(*traffic_, [&] { return do_broadcast(data, root, Completion::blocking); });
}

Request Communicator::start_broadcast(Elements data, int root) {
  Door(rank_, size_, *traffic_).broadcast(data, root);
  return started(do_broadcast(data, root, Completion::pending), traffic_);
}

void Communicator::reduce(ConstElements in, Elements out, ReduceOp op, int root, ReductionOrder order) {
  Door(rank_, size_, *traffic_).reduce(in, out, op, root);
  complete(*traffic_, [&] { return do_reduce(in, out, op, root, order, Completion::blocking); });
}

Request Communicator::start_reduce(ConstElements in, Elements out, ReduceOp op, int root,
                                   ReductionOrder order) {
  Door(rank_, size_, *traffic_).reduce(in, out, op, root);
  return started(do_reduce(in, out, op, root, order, Completion::pending), traffic_);
}

void Communicator::all_reduce(Elements data, ReduceOp op, ReductionOrder order) {
  Door(rank_, size_, *traffic_).all_reduce(data, op);
  complete(*traffic_, [&] { return do_all_reduce(data, op, order, Completion::blocking); });
}

Request Communicator::start_all_reduce(Elements data, ReduceOp op, ReductionOrder order) {
  Door(rank_, size_, *traffic_).all_reduce(data, op);
  return started(do_all_reduce(data, op, order, Completion::pending), traffic_);
}

void Communicator::gather(ConstElements mine, Elements all, int root) {
  gather_v(mine, all, equal_counts(size_, mine.count), root);
}

void Communicator::gather_v(ConstElements mine, Elements all, std::span<const Index> counts, int root) {
  Door(rank_, size_, *traffic_).gather(mine, all, counts, root);
  complete(*traffic_, [&] { return do_gather(mine, all, counts, root, Completion::blocking); });
}

Request Communicator::start_gather_v(ConstElements mine, Elements all, std::span<const Index> counts,
                                     int root) {
  Door(rank_, size_, *traffic_).gather(mine, all, counts, root);
  return started(do_gather(mine, all, counts, root, Completion::pending), traffic_);
}

void Communicator::scatter(ConstElements all, Elements mine, int root) {
  scatter_v(all, equal_counts(size_, mine.count), mine, root);
}

void Communicator::scatter_v(ConstElements all, std::span<const Index> counts, Elements mine, int root) {
  Door(rank_, size_, *traffic_).scatter(all, counts, mine, root);
  complete(*traffic_, [&] { return do_scatter(all, counts, mine, root, Completion::blocking); });
}

Request Communicator::start_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                      int root) {
  Door(rank_, size_, *traffic_).scatter(all, counts, mine, root);
  return started(do_scatter(all, counts, mine, root, Completion::pending), traffic_);
}

void Communicator::all_gather(ConstElements mine, Elements all) {
  all_gather_v(mine, all, equal_counts(size_, mine.count));
}

void Communicator::all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts) {
  Door(rank_, size_, *traffic_).all_gather(mine, all, counts);
  complete(*traffic_, [&] { return do_all_gather(mine, all, counts, Completion::blocking); });
}

Request Communicator::start_all_gather_v(ConstElements mine, Elements all, std::span<const Index> counts) {
  Door(rank_, size_, *traffic_).all_gather(mine, all, counts);
  return started(do_all_gather(mine, all, counts, Completion::pending), traffic_);
}

void Communicator::reduce_scatter(ConstElements all, Elements mine, ReduceOp op, ReductionOrder order) {
  reduce_scatter_v(all, equal_counts(size_, mine.count), mine, op, order);
}

void Communicator::reduce_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                    ReduceOp op, ReductionOrder order) {
  Door(rank_, size_, *traffic_).reduce_scatter(all, counts, mine, op);
  complete(*traffic_, [&] { return do_reduce_scatter(all, counts, mine, op, order, Completion::blocking); });
}

Request Communicator::start_reduce_scatter_v(ConstElements all, std::span<const Index> counts, Elements mine,
                                             ReduceOp op, ReductionOrder order) {
  Door(rank_, size_, *traffic_).reduce_scatter(all, counts, mine, op);
  return started(do_reduce_scatter(all, counts, mine, op, order, Completion::pending), traffic_);
}

void Communicator::all_to_all(ConstElements send, Elements receive) {
  require<UsageError>(send.count % size_ == 0, "all_to_all: ", send.count, " elements cannot be cut into ",
                      size_,
                      " equal parts, one for each rank; use all_to_all_v for parts of different lengths");
  const auto counts = equal_counts(size_, send.count / size_);
  all_to_all_v(send, counts, receive, counts);
}

void Communicator::all_to_all_v(ConstElements send, std::span<const Index> send_counts, Elements receive,
                                std::span<const Index> receive_counts) {
  Door(rank_, size_, *traffic_).all_to_all(send, send_counts, receive, receive_counts);
  complete(*traffic_,
           [&] { return do_all_to_all(send, send_counts, receive, receive_counts, Completion::blocking); });
}

Request Communicator::start_all_to_all_v(ConstElements send, std::span<const Index> send_counts,
                                         Elements receive, std::span<const Index> receive_counts) {
  Door(rank_, size_, *traffic_).all_to_all(send, send_counts, receive, receive_counts);
  return started(do_all_to_all(send, send_counts, receive, receive_counts, Completion::pending), traffic_);
}

void Communicator::send(ConstElements data, int destination, int tag) {
  Door(rank_, size_, *traffic_).send(data, destination, tag);
  complete(*traffic_, [&] { return do_send(data, destination, tag, Completion::blocking); });
}

Request Communicator::start_send(ConstElements data, int destination, int tag) {
  Door(rank_, size_, *traffic_).send(data, destination, tag);
  return started(do_send(data, destination, tag, Completion::pending), traffic_);
}

void Communicator::receive(Elements data, int source, int tag) {
  Door(rank_, size_, *traffic_).receive(data, source, tag);
  complete(*traffic_, [&] { return do_receive(data, source, tag, Completion::blocking); });
}

Request Communicator::start_receive(Elements data, int source, int tag) {
  Door(rank_, size_, *traffic_).receive(data, source, tag);
  return started(do_receive(data, source, tag, Completion::pending), traffic_);
}

void Communicator::send_receive(ConstElements out, int destination, Elements in, int source, int tag) {
  Door(rank_, size_, *traffic_).send_receive(out, destination, in, source, tag);
  Request incoming(do_receive(in, source, tag, Completion::pending), traffic_);
  complete(*traffic_, [&] { return do_send(out, destination, tag, Completion::blocking); });
  incoming.wait();
}

}  // namespace gridlops
