// SPDX-License-Identifier: BSD-3-Clause
#include "comm/door.hpp"

#include <numeric>
#include <string>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

namespace {

/// What can be wrong with arguments in themselves. Messages start with the operation's name.
class Arguments {
 public:
  Arguments(CommOperation operation, int rank, int size)
      : name_(name_of(operation)), rank_(rank), size_(size) {}

  void rank_exists(int rank, const char* role) const {
    require<UsageError>(rank >= 0 && rank < size_, name_, ": the ", role, " is ", rank,
                        ", which is no rank of this communicator; its ranks are 0 to ", size_ - 1);
  }

  void array(const ConstElements& array, const char* role) const {
    require<UsageError>(array.count >= 0, name_, ": the count of '", role, "' is ", array.count,
                        "; counts are not negative");
    require<UsageError>(array.count == 0 || array.data != nullptr, name_, ": '", role, "' has ", array.count,
                        " elements but its address is null");
  }

  void message_to_or_from(const ConstElements& data, int peer, const char* role, int tag) const {
    rank_exists(peer, role);
    require<UsageError>(tag >= 0 && tag <= Communicator::max_tag, name_, ": the tag is ", tag,
                        "; tags of messages are 0 to ", Communicator::max_tag, ", others are used inside");
    array(data, "data");
  }

  void same_type(const ConstElements& one, const ConstElements& other, const char* roles) const {
    require<UsageError>(one.type == other.type && one.reals_per_element == other.reals_per_element, name_,
                        ": ", roles, " have different element types, so their elements do not correspond");
  }

  void same_count(Index count, Index expected, const char* role, const char* of_what) const {
    require<UsageError>(count == expected, name_, ": '", role, "' has ", count, " elements on rank ", rank_,
                        ", but ", of_what, " ", expected,
                        "; all ranks must agree on the lengths of the parts");
  }

  void counts(std::span<const Index> counts, const char* role) const {
    require<UsageError>(counts.size() == static_cast<std::size_t>(size_), name_, ": '", role, "' has ",
                        counts.size(), " entries, but there is one part for each of the ", size_, " ranks");
    for (int i = 0; i < size_; ++i) {
      const Index count = counts[at(i)];
      require<UsageError>(count >= 0, name_, ": '", role, "' has ", count, " for rank ", i,
                          "; counts are not negative");
    }
  }

  /// `all` is made of one part per rank.
  void whole(const ConstElements& all, std::span<const Index> part_counts, const char* role) const {
    array(all, role);
    same_count(all.count, std::accumulate(part_counts.begin(), part_counts.end(), Index{0}), role,
               "the counts of all parts add up to");
  }

  /// `mine` is this rank's part.
  void part(const ConstElements& mine, std::span<const Index> part_counts) const {
    counts(part_counts, "counts");
    array(mine, "mine");
    same_count(mine.count, part_counts[at(rank_)], "mine", "the counts say");
  }

  void reducible(const ConstElements& data, ReduceOp op) const {
    require<UsageError>(
        data.type != ElementType::byte, name_,
        ": bytes and characters have no sum, product or order that all transports share; use i32 or i64");
    require<UsageError>(
        data.reals_per_element == 1 || op == ReduceOp::sum, name_,
        ": complex numbers can only be summed: they have no minimum or maximum, and a product would need "
        "more than pairs of reals; gather them and combine them locally");
  }

 private:
  const char* name_;
  int rank_, size_;
};

/// Bytes of this rank's part in a balanced cut of the elements.
Index balanced_part_bytes(const ConstElements& data, int rank, int size) {
  return (data.count / size + (rank < data.count % size ? 1 : 0)) * data.element_size();
}

}  // namespace

void Door::pass(CommOperation operation, Index sent, Index received, Index operand_bytes, int peer) {
  traffic_.bytes_sent += sent;
  traffic_.bytes_received += received;
  ++traffic_.calls[static_cast<std::size_t>(operation)];
  last_operation() = {OperationRecord::State::running, operation, operand_bytes, peer, rank_, size_};
}

void Door::split(std::optional<int> color) {
  require<UsageError>(color.value_or(0) >= 0, "split: the color is ", color.value_or(0),
                      "; colors are not negative, and a rank that joins no group gives none");
  pass(CommOperation::split, 0, 0, 0);
}

void Door::barrier() { pass(CommOperation::barrier, 0, 0, 0); }

void Door::broadcast(const ConstElements& data, int root) {
  const Arguments arguments(CommOperation::broadcast, rank_, size_);
  arguments.rank_exists(root, "root");
  arguments.array(data, "data");
  const Index bytes = data.bytes();
  const bool am_root = rank_ == root;
  pass(CommOperation::broadcast, am_root ? bytes * (size_ - 1) : 0, am_root ? 0 : bytes, bytes, root);
}

void Door::reduce(const ConstElements& in, const ConstElements& out, ReduceOp op, int root) {
  const Arguments arguments(CommOperation::reduce, rank_, size_);
  arguments.rank_exists(root, "root");
  arguments.array(in, "in");
  arguments.reducible(in, op);
  const bool am_root = rank_ == root;
  if (am_root) {
    arguments.array(out, "out");
    arguments.same_type(in, out, "'in' and 'out'");
    arguments.same_count(out.count, in.count, "out", "'in' has");
  }
  const Index bytes = in.bytes();
  pass(CommOperation::reduce, am_root ? 0 : bytes, am_root ? bytes * (size_ - 1) : 0, bytes, root);
}

void Door::all_reduce(const ConstElements& data, ReduceOp op) {
  const Arguments arguments(CommOperation::all_reduce, rank_, size_);
  arguments.array(data, "data");
  arguments.reducible(data, op);
  const Index own = balanced_part_bytes(data, rank_, size_);
  const Index moved = own * (size_ - 1) + data.bytes() - own;
  pass(CommOperation::all_reduce, moved, moved, data.bytes());
}

void Door::gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts,
                  int root) {
  const Arguments arguments(CommOperation::gather, rank_, size_);
  arguments.rank_exists(root, "root");
  arguments.part(mine, counts);
  const bool am_root = rank_ == root;
  if (am_root) {
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'mine' and 'all'");
  }
  pass(CommOperation::gather, am_root ? 0 : mine.bytes(), am_root ? all.bytes() - mine.bytes() : 0,
       mine.bytes(), root);
}

void Door::scatter(const ConstElements& all, std::span<const Index> counts, const ConstElements& mine,
                   int root) {
  const Arguments arguments(CommOperation::scatter, rank_, size_);
  arguments.rank_exists(root, "root");
  arguments.part(mine, counts);
  const bool am_root = rank_ == root;
  if (am_root) {
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'all' and 'mine'");
  }
  pass(CommOperation::scatter, am_root ? all.bytes() - mine.bytes() : 0, am_root ? 0 : mine.bytes(),
       mine.bytes(), root);
}

void Door::all_gather(const ConstElements& mine, const ConstElements& all, std::span<const Index> counts) {
  const Arguments arguments(CommOperation::all_gather, rank_, size_);
  arguments.part(mine, counts);
  arguments.whole(all, counts, "all");
  arguments.same_type(mine, all, "'mine' and 'all'");
  pass(CommOperation::all_gather, mine.bytes() * (size_ - 1), all.bytes() - mine.bytes(), all.bytes());
}

void Door::reduce_scatter(const ConstElements& all, std::span<const Index> counts, const ConstElements& mine,
                          ReduceOp op) {
  const Arguments arguments(CommOperation::reduce_scatter, rank_, size_);
  arguments.part(mine, counts);
  arguments.whole(all, counts, "all");
  arguments.same_type(mine, all, "'all' and 'mine'");
  arguments.reducible(all, op);
  pass(CommOperation::reduce_scatter, all.bytes() - mine.bytes(), mine.bytes() * (size_ - 1), all.bytes());
}

void Door::all_to_all(const ConstElements& send, std::span<const Index> send_counts,
                      const ConstElements& receive, std::span<const Index> receive_counts) {
  const Arguments arguments(CommOperation::all_to_all, rank_, size_);
  arguments.counts(send_counts, "send_counts");
  arguments.counts(receive_counts, "receive_counts");
  arguments.whole(send, send_counts, "send");
  arguments.whole(receive, receive_counts, "receive");
  arguments.same_type(send, receive, "'send' and 'receive'");
  const auto me = static_cast<std::size_t>(rank_);
  arguments.same_count(receive_counts[me], send_counts[me], "my part of receive", "my part of 'send' has");
  const Index own = send_counts[me] * send.element_size();
  pass(CommOperation::all_to_all, send.bytes() - own, receive.bytes() - own, send.bytes());
}

void Door::send(const ConstElements& data, int destination, int tag) {
  Arguments(CommOperation::send, rank_, size_).message_to_or_from(data, destination, "destination", tag);
  pass(CommOperation::send, data.bytes(), 0, data.bytes(), destination);
}

void Door::receive(const ConstElements& data, int source, int tag) {
  Arguments(CommOperation::receive, rank_, size_).message_to_or_from(data, source, "source", tag);
  pass(CommOperation::receive, 0, data.bytes(), data.bytes(), source);
}

void Door::send_receive(const ConstElements& out, int destination, const ConstElements& in, int source,
                        int tag) {
  Arguments(CommOperation::send, rank_, size_).message_to_or_from(out, destination, "destination", tag);
  receive(in, source, tag);
  pass(CommOperation::send, out.bytes(), 0, out.bytes(), destination);
}

}  // namespace gridlops
