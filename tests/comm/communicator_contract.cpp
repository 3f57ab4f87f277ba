// SPDX-License-Identifier: BSD-3-Clause
#include "comm/communicator_contract.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "comm/contract_exchange.hpp"
#include "comm/contract_reductions.hpp"
#include "gridlops/base/error.hpp"

// The contract is compiled once for all test programs that check an implementation.

namespace gridlops::testing {

namespace {

/// Checks MPI's rules: order by key, ties by old rank, negative keys, ranks without a colour.
void check_split(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  using Color = std::optional<int>;
  const std::pair<std::function<Color(int)>, std::function<int(int)>> cases[] = {
      {[](int) { return Color(0); }, [](int rank) { return rank; }},
      {[](int) { return Color(7); }, [](int rank) { return -rank; }},
      {[](int rank) { return Color(rank % 2); }, [](int) { return 3; }},
      {[](int rank) { return Color(rank / 2); }, [](int rank) { return rank % 2 == 0 ? 1 : -1; }},
      {[](int rank) { return rank == 1 ? Color() : Color(rank % 2); }, [](int rank) { return -(rank / 3); }},
      {[](int) { return Color(); }, [](int) { return 0; }},
  };
  for (const auto& [color, key] : cases) {
    std::vector<std::int32_t> members;
    for (int rank = 0; rank < comm.size(); ++rank) {
      if (color(rank) && color(rank) == color(me)) members.push_back(rank);
    }
    const auto& key_of = key;
    std::stable_sort(members.begin(), members.end(), [&](int a, int b) { return key_of(a) < key_of(b); });
    const Ledger ledger(comm);
    const auto child = comm.split(color(me), key(me));
    ledger.expect(CommOperation::split, 0, 0, 0);
    REQUIRE((child != nullptr) == color(me).has_value());
    if (child == nullptr) continue;
    CHECK(child->size() == static_cast<int>(members.size()));
    CHECK(members[static_cast<std::size_t>(child->rank())] == me);
    CHECK(child->transport() == comm.transport());

    Operand<std::int32_t> mine(subject, {me});
    Operand<std::int32_t> all(subject, untouched<std::int32_t>(child->size()));
    const Ledger shared_account(comm);
    child->all_gather(mine, all);
    shared_account.expect(CommOperation::all_gather, child->size() - 1, child->size() - 1, 4);
    CHECK(all.values() == members);
  }
}

/// Starts operations of a communicator and of two that were split off from it as a group.
void check_groups(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank(), size = comm.size();
  const auto every_second = comm.split(me % 2, 0), neighbours = comm.split(me / 2, 0);
  for (int pattern = 0; pattern <= count_patterns; ++pattern) {
    CAPTURE(pattern);
    std::vector<Index> counts = uneven_counts(every_second->size(), pattern);
    // Parts that differ little may travel in another way.
    if (pattern == count_patterns)
      for (int rank = 0; rank < every_second->size(); ++rank)
        counts[static_cast<std::size_t>(rank)] = rank == 0 ? 21 : 20;
    const Index own = count_of(counts, every_second->rank()), n = pattern * 5;
    Operand<double> gathered(subject, untouched<double>(sum(counts)));
    Operand<double> part(subject, values<double>(every_second->rank(), own));
    Operand<std::complex<float>> sent(
        subject, me % 2 == 0 ? values<std::complex<float>>(me, n) : untouched<std::complex<float>>(n));
    const auto order = ReductionOrder::by_rank;
    Operand<double> summed(subject, contributions<double>(ReduceOp::sum, order, me, n));
    std::vector<Request> requests;
    {
      CommunicationGroup group(comm);
      requests.push_back(every_second->start_all_gather_v(part, gathered, counts));
      requests.push_back(neighbours->start_broadcast(sent, 0));
      requests.push_back(comm.start_all_reduce(summed, ReduceOp::sum, order));
      if (pattern % 2 == 0) group.close();
    }
    if (me % 2 == 1) std::reverse(requests.begin(), requests.end());
    for (Request& request : requests) request.wait();
    CHECK(gathered.values() == concatenate<double>(every_second->size(), [&](int rank) {
            return values<double>(rank, count_of(counts, rank));
          }));
    CHECK(sent.values() == values<std::complex<float>>(me / 2 * 2, n));
    CHECK(same_bits(summed.values(), reduced<double>(ReduceOp::sum, order, size, n)));
  }
}

/// Completes several operations that are under way, in another order on every second rank, which also passes
/// a barrier first.
void check_requests(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  const int size = comm.size();
  constexpr auto by_rank = ReductionOrder::by_rank;
  const auto counts = uneven_counts(size, 3);
  const Index own = count_of(counts, me);
  for (const Index n : {3, 2000}) {
    Operand<double> summed(subject, contributions<double>(ReduceOp::sum, by_rank, me, n));
    Operand<float> sent(subject, me == 0 ? values<float>(0, n) : untouched<float>(n));
    Operand<std::int64_t> gathered(subject, untouched<std::int64_t>(sum(counts)));
    Operand<std::int64_t> part(subject, values<std::int64_t>(me, own));
    Operand<double> scattered(subject, untouched<double>(own));
    Operand<double> to_scatter(subject, contributions<double>(ReduceOp::sum, by_rank, me, sum(counts)));
    Operand<char> message_in(subject, untouched<char>(n));
    Operand<char> message_out(subject, values<char>(me, n));

    std::vector<Request> requests;
    requests.push_back(comm.start_all_reduce(summed, ReduceOp::sum, by_rank));
    requests.push_back(comm.start_receive(message_in, (me + size - 1) % size));
    requests.push_back(comm.start_broadcast(sent, 0));
    requests.push_back(comm.start_all_gather_v(part, gathered, counts));
    requests.push_back(comm.start_send(message_out, (me + 1) % size));
    requests.push_back(comm.start_reduce_scatter_v(to_scatter, counts, scattered, ReduceOp::sum, by_rank));
    requests.push_back(comm.start_barrier());
    if (me % 2 == 1) {
      comm.barrier();
      std::reverse(requests.begin(), requests.end());
    }
    for (Request& request : requests) request.wait();
    if (me % 2 == 0) comm.barrier();

    CHECK(same_bits(summed.values(), reduced<double>(ReduceOp::sum, by_rank, size, n)));
    CHECK(sent.values() == values<float>(0, n));
    CHECK(gathered.values() == concatenate<std::int64_t>(size, [&](int rank) {
            return values<std::int64_t>(rank, count_of(counts, rank));
          }));
    CHECK(same_bits(scattered.values(),
                    reduced<double>(ReduceOp::sum, by_rank, size, own, offset_of(counts, me))));
    CHECK(message_in.values() == values<char>((me + size - 1) % size, n));
  }
  Request replaced = comm.start_barrier();
  replaced = comm.start_barrier();
  Request moved = std::move(replaced);
  Request empty;
  empty.wait();
  CHECK(empty.test());
}

/// With arguments that are wrong in themselves all ranks throw, nothing is sent or counted, and all goes on.
void check_wrong_arguments(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int size = comm.size();
  const Traffic before = comm.traffic();
  Operand<double> one(subject, {1.0});
  Operand<double> many(subject, untouched<double>(size + 1));
  Operand<float> other_type(subject, {1.0F});
  Operand<std::complex<double>> complex(subject, {1.0});
  Operand<char> text(subject, {'a'});
  const std::vector<Index> ones(static_cast<std::size_t>(size), 1);
  const std::vector<Index> too_few(static_cast<std::size_t>(size - 1), 1);
  std::vector<Index> negative = ones;
  negative.back() = -1;
  const auto refuses = [](const std::function<void()>& call) { CHECK_THROWS_AS(call(), UsageError); };

  for (const int root : {-1, size}) {
    refuses([&] { comm.broadcast(one, root); });
    refuses([&] { static_cast<void>(comm.start_broadcast(one, root)); });
    refuses([&] { comm.reduce(one, one, ReduceOp::sum, root); });
    refuses([&] { comm.gather(one, many.part(0, size), root); });
    refuses([&] { comm.scatter(many.part(0, size), one, root); });
    refuses([&] { comm.send(one, root); });
    refuses([&] { comm.receive(one, root); });
    refuses([&] { comm.send_receive(one, 0, one, root); });
  }
  refuses([&] { comm.broadcast(one.part(0, -1), 0); });
  refuses([&] { comm.broadcast(Elements(static_cast<double*>(nullptr), 1), 0); });
  refuses([&] { comm.send(one, 0, -1); });
  refuses([&] { comm.send(one, 0, Communicator::max_tag + 1); });
  refuses([&] { comm.all_gather_v(one, many, ones); });
  refuses([&] { comm.all_gather_v(many, many, ones); });
  refuses([&] { comm.all_gather_v(one, many.part(0, size), too_few); });
  refuses([&] { comm.all_gather_v(one, many.part(0, size), negative); });
  refuses([&] { comm.all_gather_v(other_type, many.part(0, size), ones); });
  refuses([&] { static_cast<void>(comm.start_gather_v(many, many, ones, 0)); });
  refuses([&] { comm.scatter_v(many, too_few, one, 0); });
  refuses([&] { comm.all_to_all_v(many, ones, many.part(0, size), ones); });
  refuses([&] { comm.all_to_all_v(many.part(0, size), ones, many.part(0, size), negative); });
  if (size > 1) refuses([&] { comm.all_to_all(many, many); });
  for (const ReduceOp op : {ReduceOp::min, ReduceOp::max, ReduceOp::prod}) {
    refuses([&] { comm.all_reduce(complex, op); });
    refuses([&] { comm.reduce(complex, complex, op, 0); });
    refuses([&] { comm.reduce_scatter_v(complex, ones, complex, op, ReductionOrder::by_rank); });
  }
  refuses([&] { comm.all_reduce(text, ReduceOp::sum); });
  refuses([&] { static_cast<void>(comm.split(-1, 0)); });

  CHECK(comm.traffic().bytes_sent == before.bytes_sent);
  CHECK(comm.traffic().bytes_received == before.bytes_received);
  CHECK(comm.traffic().calls == before.calls);
  comm.barrier();
}

/// Calls check.operator()<T>() for all element types, or for those that can be reduced.
template <class Check>
void for_each_reducible_type(Check&& check) {
  check.template operator()<float>();
  check.template operator()<double>();
  check.template operator()<std::complex<float>>();
  check.template operator()<std::complex<double>>();
  check.template operator()<std::int32_t>();
  check.template operator()<std::int64_t>();
}
template <class Check>
void for_each_element_type(Check&& check) {
  for_each_reducible_type(check);
  check.template operator()<char>();
  check.template operator()<std::byte>();
}

}  // namespace

void check_communicator_contract(const std::function<Subject()>& make) {
  const Subject subject = make();
  SECTION("broadcast") {
    for_each_element_type([&]<class T>() { check_broadcast<T>(subject); });
  }
  SECTION("gather") {
    for_each_element_type([&]<class T>() { check_gather<T>(subject); });
  }
  SECTION("scatter") {
    for_each_element_type([&]<class T>() { check_scatter<T>(subject); });
  }
  SECTION("all_gather") {
    for_each_element_type([&]<class T>() { check_all_gather<T>(subject); });
  }
  SECTION("all_to_all") {
    for_each_element_type([&]<class T>() { check_all_to_all<T>(subject); });
  }
  SECTION("messages") {
    for_each_element_type([&]<class T>() { check_messages<T>(subject); });
  }
  SECTION("reduce") {
    for_each_reducible_type([&]<class T>() { check_reduce<T>(subject, {0, 1, 9, 40}); });
  }
  SECTION("all_reduce") {
    for_each_reducible_type([&]<class T>() { check_all_reduce<T>(subject); });
  }
  SECTION("all_reduce of long operands") { check_all_reduce<double>(subject, {2501}); }
  SECTION("reduce_scatter") {
    for_each_reducible_type([&]<class T>() { check_reduce_scatter<T>(subject); });
  }
  SECTION("reduce_scatter of long operands") { check_reduce_scatter<double>(subject, 1234); }
  SECTION("the order of reductions shows") {
    check_that_order_shows<float>(subject.comm->size());
    check_that_order_shows<double>(subject.comm->size());
  }
  SECTION("split") { check_split(subject); }
  SECTION("requests") { check_requests(subject); }
  SECTION("groups of operations") { check_groups(subject); }
  SECTION("wrong arguments") { check_wrong_arguments(subject); }
}

}  // namespace gridlops::testing
