// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "comm/operation_record.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// The public door of a communicator: for each operation it checks the arguments (UsageError), counts the
/// payload by the rules of Traffic, and notes the operation as the one in progress.
class Door {
 public:
  Door(int rank, int size, Traffic& traffic) : rank_(rank), size_(size), traffic_(traffic) {}

  void split(std::optional<int> color);
  void barrier();
  void broadcast(const ConstElements& data, int root);
  void reduce(const ConstElements& in, const ConstElements& out, ReduceOp op, int root);
  void all_reduce(const ConstElements& data, ReduceOp op);
  void gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts, int root);
  void scatter(const ConstElements& all, std::span<const Index> counts, const ConstElements& mine, int root);
  void all_gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts);
  void reduce_scatter(const ConstElements& all, std::span<const Index> counts, const ConstElements& mine,
                      ReduceOp op);
  void all_to_all(const ConstElements& send, std::span<const Index> send_counts, const ConstElements& receive,
                  std::span<const Index> receive_counts);
  void send(const ConstElements& data, int destination, int tag);
  void receive(const ConstElements& data, int source, int tag);
  void send_receive(const ConstElements& out, int destination, const ConstElements& in, int source, int tag);

 private:
  void pass(CommOperation operation, Index sent, Index received, Index operand_bytes, int peer = -1);

  int rank_, size_;
  Traffic& traffic_;
};

}  // namespace gridlops
