// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/call_account.hpp"

#include <numeric>
#include <string>

#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/watchdog.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

const char* name_of(ElementType type, bool is_complex) {
  switch (type) {
    case ElementType::byte:
      return "byte";
    case ElementType::i32:
      return "i32";
    case ElementType::i64:
      return "i64";
    case ElementType::f32:
      return is_complex ? "c64" : "f32";
    case ElementType::f64:
      break;
  }
  return is_complex ? "c128" : "f64";
}

/// Checks the arguments of an operation, whose name begins the messages. Adds those that must be the same on
/// all ranks to the agreement, if there is one.
class Arguments {
 public:
  Arguments(CommOperation operation, int rank, int size, Agreement* agreement)
      : name_(gridlops::name_of(operation)), rank_(rank), size_(size), agreement_(agreement) {}

  void alike_root(int root) const {
    if (agreement_ != nullptr) agreement_->on("the root", root);
  }
  void alike_type(const ConstElements& array) const {
    if (agreement_ != nullptr)
      agreement_->on("the element type", name_of(array.type, array.reals_per_element > 1));
  }
  void alike_count(Index count) const {
    if (agreement_ != nullptr) agreement_->on("the count", count);
  }
  void alike_counts(std::span<const Index> counts) const {
    if (agreement_ == nullptr) return;
    std::string text;
    for (const Index count : counts) text += message(text.empty() ? "" : " ", count);
    agreement_->on("the counts", text);
  }
  void alike_reduction(ReduceOp op, ReductionOrder order) const {
    if (agreement_ != nullptr)
      agreement_->on("the reduction", name_of(op), order == ReductionOrder::by_rank ? " by rank" : "");
  }

  void rank_exists(int rank, const char* role) const {
    require_here<UsageError>(rank >= 0 && rank < size_, name_, ": the ", role, " is ", rank,
                             ", which is no rank of this communicator; its ranks are 0 to ", size_ - 1);
  }

  void array(const ConstElements& array, const char* role) const {
    require_here<UsageError>(array.count >= 0, name_, ": the count of '", role, "' is ", array.count,
                             "; counts are not negative");
    require_here<UsageError>(array.count == 0 || array.data != nullptr, name_, ": '", role, "' has ",
                             array.count, " elements but its address is null");
  }

  void message_to_or_from(const ConstElements& data, int peer, const char* role, int tag) const {
    rank_exists(peer, role);
    require_here<UsageError>(tag >= 0 && tag <= Communicator::max_tag, name_, ": the tag is ", tag,
                             "; tags of messages are 0 to ", Communicator::max_tag,
                             ", others are used inside");
    array(data, "data");
  }

  void same_type(const ConstElements& one, const ConstElements& other, const char* roles) const {
    require_here<UsageError>(one.type == other.type && one.reals_per_element == other.reals_per_element,
                             name_, ": ", roles,
                             " have different element types, so their elements do not correspond");
  }

  void same_count(Index count, Index expected, const char* role, const char* of_what) const {
    require_here<UsageError>(count == expected, name_, ": '", role, "' has ", count, " elements on rank ",
                             rank_, ", but ", of_what, " ", expected,
                             "; all ranks must agree on the lengths of the parts");
  }

  void counts(std::span<const Index> counts, const char* role) const {
    require_here<UsageError>(counts.size() == static_cast<std::size_t>(size_), name_, ": '", role, "' has ",
                             counts.size(), " entries, but there is one part for each of the ", size_,
                             " ranks");
    for (int i = 0; i < size_; ++i) {
      const Index count = counts[at(i)];
      require_here<UsageError>(count >= 0, name_, ": '", role, "' has ", count, " for rank ", i,
                               "; counts are not negative");
    }
  }

  /// Checks an array of one part per rank.
  void whole(const ConstElements& all, std::span<const Index> part_counts, const char* role) const {
    array(all, role);
    same_count(all.count, std::accumulate(part_counts.begin(), part_counts.end(), Index{0}), role,
               "the counts of all parts add up to");
  }

  /// Checks an array that is this rank's part.
  void part(const ConstElements& mine, std::span<const Index> part_counts) const {
    counts(part_counts, "counts");
    array(mine, "mine");
    same_count(mine.count, part_counts[at(rank_)], "mine", "the counts say");
  }

  void reducible(const ConstElements& data, ReduceOp op) const {
    require_here<UsageError>(
        data.type != ElementType::byte, name_,
        ": bytes and characters have no sum, product or order that all transports share; use i32 or i64");
    require_here<UsageError>(
        data.reals_per_element == 1 || op == ReduceOp::sum, name_,
        ": complex numbers can only be summed: they have no minimum or maximum, and a product would need "
        "more than pairs of reals; gather them and combine them locally");
  }

 private:
  const char* name_;
  int rank_, size_;
  Agreement* agreement_;
};

}  // namespace

CallAccount::CallAccount(Communicator& comm, Communicator::Completion completion)
    : comm_(comm),
      traffic_(*comm.traffic_),
      compares_(completion == Communicator::Completion::blocking && !comm.is_agreeing_ &&
                check_level() == Check::all) {}

template <class Check>
void CallAccount::check(CommOperation operation, Check&& arguments) {
  if (!compares_) return arguments(Arguments(operation, rank(), size(), nullptr));
  agree(comm_, gridlops::name_of(operation),
        [&](Agreement& agreement) { arguments(Arguments(operation, rank(), size(), &agreement)); });
}

CallAccount& CallAccount::enter(CommOperation operation, Index sent, Index received, Index operand_bytes,
                                int peer) {
  count(operation, sent, received);
  const auto now = OperationRecord::Clock::now();
  const bool is_collective = operation != CommOperation::send && operation != CommOperation::receive;
  flight_recorder().begin({OperationRecord::State::running, operation,
                           is_collective ? ++comm_.collectives_ : 0, operand_bytes, peer, rank(), size(),
                           now});
  if (now >= Watchdog::next_answer()) Watchdog::current()->answer(now);
  return *this;
}

void CallAccount::count(CommOperation operation, Index sent, Index received) {
  traffic_.bytes_sent += sent;
  traffic_.bytes_received += received;
  ++traffic_.calls[static_cast<std::size_t>(operation)];
  name_ = name_of(operation);
  region_.emplace(name_);
  if (OperationRegion::counts())
    trace_counts({.bytes_sent = sent, .bytes_received = received, .messages = 1});
}

Request CallAccount::request(Communicator::Pending pending) const {
  Request request(std::move(pending), comm_.traffic_);
  if (request.pending_ != nullptr && OperationRegion::counts()) request.flight_ = trace_flight(name_);
  return request;
}

CallAccount& CallAccount::split(std::optional<int> color) {
  check(CommOperation::split, [&](const Arguments&) {
    require_here<UsageError>(color.value_or(0) >= 0, "split: the color is ", color.value_or(0),
                             "; colors are not negative, and a rank that joins no group gives none");
  });
  return enter(CommOperation::split, 0, 0, 0);
}

CallAccount& CallAccount::barrier() {
  check(CommOperation::barrier, [](const Arguments&) {});
  return enter(CommOperation::barrier, 0, 0, 0);
}

CallAccount& CallAccount::broadcast(const ConstElements& data, int root) {
  check(CommOperation::broadcast, [&](const Arguments& arguments) {
    arguments.alike_root(root);
    arguments.alike_type(data);
    arguments.alike_count(data.count);
    arguments.rank_exists(root, "root");
    arguments.array(data, "data");
  });
  const Index bytes = data.bytes();
  const bool am_root = rank() == root;
  return enter(CommOperation::broadcast, am_root ? bytes * (size() - 1) : 0, am_root ? 0 : bytes, bytes,
               root);
}

CallAccount& CallAccount::reduce(const ConstElements& in, const ConstElements& out, ReduceOp op, int root,
                                 ReductionOrder order) {
  const bool am_root = rank() == root;
  check(CommOperation::reduce, [&](const Arguments& arguments) {
    arguments.alike_root(root);
    arguments.alike_type(in);
    arguments.alike_count(in.count);
    arguments.alike_reduction(op, order);
    arguments.rank_exists(root, "root");
    arguments.array(in, "in");
    arguments.reducible(in, op);
    if (!am_root) return;
    arguments.array(out, "out");
    arguments.same_type(in, out, "'in' and 'out'");
    arguments.same_count(out.count, in.count, "out", "'in' has");
  });
  const Index bytes = in.bytes();
  return enter(CommOperation::reduce, am_root ? 0 : bytes, am_root ? bytes * (size() - 1) : 0, bytes, root);
}

CallAccount& CallAccount::all_reduce(const ConstElements& data, ReduceOp op, ReductionOrder order) {
  check(CommOperation::all_reduce, [&](const Arguments& arguments) {
    arguments.alike_type(data);
    arguments.alike_count(data.count);
    arguments.alike_reduction(op, order);
    arguments.array(data, "data");
    arguments.reducible(data, op);
  });
  const Index own = balanced_part(data.count, size(), rank()).size * data.element_size();
  const Index moved = own * (size() - 1) + data.bytes() - own;
  return enter(CommOperation::all_reduce, moved, moved, data.bytes());
}

CallAccount& CallAccount::gather(const ConstElements& mine, const ConstElements& all,
                                 std::span<const Index> counts, int root) {
  const bool am_root = rank() == root;
  check(CommOperation::gather, [&](const Arguments& arguments) {
    arguments.alike_root(root);
    arguments.alike_type(mine);
    arguments.alike_counts(counts);
    arguments.rank_exists(root, "root");
    arguments.part(mine, counts);
    if (!am_root) return;
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'mine' and 'all'");
  });
  return enter(CommOperation::gather, am_root ? 0 : mine.bytes(), am_root ? all.bytes() - mine.bytes() : 0,
               mine.bytes(), root);
}

CallAccount& CallAccount::scatter(const ConstElements& all, std::span<const Index> counts,
                                  const ConstElements& mine, int root) {
  const bool am_root = rank() == root;
  check(CommOperation::scatter, [&](const Arguments& arguments) {
    arguments.alike_root(root);
    arguments.alike_type(mine);
    arguments.alike_counts(counts);
    arguments.rank_exists(root, "root");
    arguments.part(mine, counts);
    if (!am_root) return;
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'all' and 'mine'");
  });
  return enter(CommOperation::scatter, am_root ? all.bytes() - mine.bytes() : 0, am_root ? 0 : mine.bytes(),
               mine.bytes(), root);
}

CallAccount& CallAccount::all_gather(const ConstElements& mine, const ConstElements& all,
                                     std::span<const Index> counts) {
  check(CommOperation::all_gather, [&](const Arguments& arguments) {
    arguments.alike_type(mine);
    arguments.alike_counts(counts);
    arguments.part(mine, counts);
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'mine' and 'all'");
  });
  return enter(CommOperation::all_gather, mine.bytes() * (size() - 1), all.bytes() - mine.bytes(),
               all.bytes());
}

CallAccount& CallAccount::reduce_scatter(const ConstElements& all, std::span<const Index> counts,
                                         const ConstElements& mine, ReduceOp op, ReductionOrder order) {
  check(CommOperation::reduce_scatter, [&](const Arguments& arguments) {
    arguments.alike_type(mine);
    arguments.alike_counts(counts);
    arguments.alike_reduction(op, order);
    arguments.part(mine, counts);
    arguments.whole(all, counts, "all");
    arguments.same_type(mine, all, "'all' and 'mine'");
    arguments.reducible(all, op);
  });
  return enter(CommOperation::reduce_scatter, all.bytes() - mine.bytes(), mine.bytes() * (size() - 1),
               all.bytes());
}

CallAccount& CallAccount::all_to_all(const ConstElements& send, std::span<const Index> send_counts,
                                     const ConstElements& receive, std::span<const Index> receive_counts) {
  check(CommOperation::all_to_all, [&](const Arguments& arguments) {
    arguments.alike_type(send);
    arguments.counts(send_counts, "send_counts");
    arguments.counts(receive_counts, "receive_counts");
    arguments.whole(send, send_counts, "send");
    arguments.whole(receive, receive_counts, "receive");
    arguments.same_type(send, receive, "'send' and 'receive'");
    const auto me = at(rank());
    arguments.same_count(receive_counts[me], send_counts[me], "my part of receive", "my part of 'send' has");
  });
  const Index own = send_counts[at(rank())] * send.element_size();
  return enter(CommOperation::all_to_all, send.bytes() - own, receive.bytes() - own, send.bytes());
}

CallAccount& CallAccount::send(const ConstElements& data, int destination, int tag) {
  Arguments(CommOperation::send, rank(), size(), nullptr)
      .message_to_or_from(data, destination, "destination", tag);
  return enter(CommOperation::send, data.bytes(), 0, data.bytes(), destination);
}

CallAccount& CallAccount::receive(const ConstElements& data, int source, int tag) {
  Arguments(CommOperation::receive, rank(), size(), nullptr).message_to_or_from(data, source, "source", tag);
  return enter(CommOperation::receive, 0, data.bytes(), data.bytes(), source);
}

CallAccount& CallAccount::send_receive(const ConstElements& out, int destination, const ConstElements& in,
                                       int source, int tag) {
  Arguments(CommOperation::send, rank(), size(), nullptr)
      .message_to_or_from(out, destination, "destination", tag);
  Arguments(CommOperation::receive, rank(), size(), nullptr).message_to_or_from(in, source, "source", tag);
  enter(CommOperation::send, out.bytes(), 0, out.bytes(), destination);
  return receive(in, source, tag);
}

Request CallAccount::start_get(std::unique_ptr<PendingOperation> pending, Index bytes) {
  count(CommOperation::get, 0, bytes);
  return request(std::move(pending));
}

void CallAccount::count_read(Index bytes) {
  traffic_.bytes_read_from_peers += bytes;
  if (OperationRegion::counts()) trace_counts({.bytes_read_from_peers = bytes});
}

}  // namespace gridlops
