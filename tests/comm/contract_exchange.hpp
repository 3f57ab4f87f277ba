// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "comm/communicator_contract.hpp"

// The contract of every Communicator, part 1: operations that move data. Each function is collective over the
// subject. Ranks go on after a failed check, so that none is left waiting.

namespace gridlops::testing {

template <class T>
void check_broadcast(const Subject& subject) {
  Communicator& comm = *subject.comm;
  for (const Form form : forms) {
    for (int root = 0; root < comm.size(); ++root) {
      for (const Index n : {0, 1, 5, 40}) {
        CAPTURE(form, root, n);
        Operand<T> data(subject, comm.rank() == root ? values<T>(root, n) : untouched<T>(n));
        const Ledger ledger(comm);
        perform(
            form, comm.rank(), [&] { comm.broadcast(data, root); },
            [&] { return comm.start_broadcast(data, root); });
        CHECK(data.values() == values<T>(root, n));
        const bool am_root = comm.rank() == root;
        ledger.expect(CommOperation::broadcast, am_root ? n * (comm.size() - 1) : 0, am_root ? 0 : n,
                      sizeof(T));
      }
    }
  }
}

template <class T>
void check_gather(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  for (int pattern = 0; pattern < count_patterns; ++pattern) {
    const auto counts = uneven_counts(comm.size(), pattern);
    const Index mine_count = count_of(counts, me);
    const auto expected =
        concatenate<T>(comm.size(), [&](int rank) { return values<T>(rank, count_of(counts, rank)); });
    for (int root = 0; root < comm.size(); ++root) {
      const bool am_root = me == root;
      for (const Form form : forms) {
        for (const bool in_place : {false, true}) {
          CAPTURE(pattern, root, form, in_place);
          auto before = untouched<T>(am_root ? sum(counts) : 0);
          const auto own = values<T>(me, mine_count);
          if (in_place && am_root) std::copy(own.begin(), own.end(), before.begin() + offset_of(counts, me));
          Operand<T> all(subject, before);
          Operand<T> separate(subject, own);
          const ConstElements mine =
              in_place && am_root ? all.part(offset_of(counts, me), mine_count) : Elements(separate);
          const Ledger ledger(comm);
          perform(
              form, me, [&] { comm.gather_v(mine, all, counts, root); },
              [&] { return comm.start_gather_v(mine, all, counts, root); });
          if (am_root) CHECK(all.values() == expected);
          ledger.expect(CommOperation::gather, am_root ? 0 : mine_count,
                        am_root ? sum(counts) - mine_count : 0, sizeof(T));
        }
      }
      Operand<T> mine(subject, values<T>(me, 3));
      Operand<T> all(subject, untouched<T>(am_root ? 3 * comm.size() : 0));
      comm.gather(mine, all, root);
      if (am_root)
        CHECK(all.values() == concatenate<T>(comm.size(), [](int rank) { return values<T>(rank, 3); }));
    }
  }
}

template <class T>
void check_scatter(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  for (int pattern = 0; pattern < count_patterns; ++pattern) {
    const auto counts = uneven_counts(comm.size(), pattern);
    const Index mine_count = count_of(counts, me);
    for (int root = 0; root < comm.size(); ++root) {
      const bool am_root = me == root;
      const auto expected = values<T>(root, mine_count, offset_of(counts, me));
      for (const Form form : forms) {
        for (const bool in_place : {false, true}) {
          CAPTURE(pattern, root, form, in_place);
          Operand<T> all(subject, values<T>(root, am_root ? sum(counts) : 0));
          Operand<T> separate(subject, untouched<T>(mine_count));
          const bool mine_in_all = in_place && am_root;
          const Elements mine =
              mine_in_all ? all.part(offset_of(counts, me), mine_count) : Elements(separate);
          const Ledger ledger(comm);
          perform(
              form, me, [&] { comm.scatter_v(all, counts, mine, root); },
              [&] { return comm.start_scatter_v(all, counts, mine, root); });
          if (!mine_in_all) CHECK(separate.values() == expected);
          if (am_root) CHECK(all.values() == values<T>(root, sum(counts)));
          ledger.expect(CommOperation::scatter, am_root ? sum(counts) - mine_count : 0,
                        am_root ? 0 : mine_count, sizeof(T));
        }
      }
      Operand<T> all(subject, values<T>(root, am_root ? 2 * comm.size() : 0));
      Operand<T> mine(subject, untouched<T>(2));
      comm.scatter(all, mine, root);
      CHECK(mine.values() == values<T>(root, 2, 2 * me));
    }
  }
}

template <class T>
void check_all_gather(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  for (int pattern = 0; pattern < count_patterns; ++pattern) {
    const auto counts = uneven_counts(comm.size(), pattern);
    const Index mine_count = count_of(counts, me);
    const auto expected =
        concatenate<T>(comm.size(), [&](int rank) { return values<T>(rank, count_of(counts, rank)); });
    for (const Form form : forms) {
      // Only some ranks have their part in place: each rank chooses by itself.
      for (const int in_place_from : {0, 1, comm.size()}) {
        CAPTURE(pattern, form, in_place_from);
        const bool in_place = me >= in_place_from;
        const auto own = values<T>(me, mine_count);
        auto before = untouched<T>(sum(counts));
        if (in_place) std::copy(own.begin(), own.end(), before.begin() + offset_of(counts, me));
        Operand<T> all(subject, before);
        Operand<T> separate(subject, own);
        const ConstElements mine =
            in_place ? all.part(offset_of(counts, me), mine_count) : Elements(separate);
        const Ledger ledger(comm);
        perform(
            form, me, [&] { comm.all_gather_v(mine, all, counts); },
            [&] { return comm.start_all_gather_v(mine, all, counts); });
        CHECK(all.values() == expected);
        ledger.expect(CommOperation::all_gather, mine_count * (comm.size() - 1), sum(counts) - mine_count,
                      sizeof(T));
      }
    }
  }
  Operand<T> mine(subject, values<T>(me, 4));
  Operand<T> all(subject, untouched<T>(4 * comm.size()));
  comm.all_gather(mine, all);
  CHECK(all.values() == concatenate<T>(comm.size(), [](int rank) { return values<T>(rank, 4); }));
}

template <class T>
void check_all_to_all(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  const int size = comm.size();
  // `from` sends values<T>(from, length, 100·to) to `to`.
  const auto length = [](int from, int to, int pattern) {
    return Index{pattern == 0 ? 0 : (from * 2 + to + pattern) % 5};
  };
  for (int pattern = 0; pattern < count_patterns; ++pattern) {
    std::vector<Index> send_counts;
    std::vector<Index> receive_counts;
    for (int peer = 0; peer < size; ++peer) {
      send_counts.push_back(length(me, peer, pattern));
      receive_counts.push_back(length(peer, me, pattern));
    }
    const auto outgoing =
        concatenate<T>(size, [&](int to) { return values<T>(me, length(me, to, pattern), 100 * to); });
    const auto expected =
        concatenate<T>(size, [&](int from) { return values<T>(from, length(from, me, pattern), 100 * me); });
    for (const Form form : forms) {
      CAPTURE(pattern, form);
      Operand<T> send(subject, outgoing);
      Operand<T> receive(subject, untouched<T>(sum(receive_counts)));
      const Ledger ledger(comm);
      perform(
          form, me, [&] { comm.all_to_all_v(send, send_counts, receive, receive_counts); },
          [&] { return comm.start_all_to_all_v(send, send_counts, receive, receive_counts); });
      CHECK(receive.values() == expected);
      ledger.expect(CommOperation::all_to_all, sum(send_counts) - count_of(send_counts, me),
                    sum(receive_counts) - count_of(receive_counts, me), sizeof(T));
    }
  }
  Operand<T> send(subject, concatenate<T>(size, [&](int to) { return values<T>(me, 3, 100 * to); }));
  Operand<T> receive(subject, untouched<T>(3 * size));
  comm.all_to_all(send, receive);
  CHECK(receive.values() == concatenate<T>(size, [&](int from) { return values<T>(from, 3, 100 * me); }));
}

/// Sends to the next rank of a ring, and receives from the previous one.
template <class T>
void check_messages(const Subject& subject) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  const int next = (me + 1) % comm.size();
  const int previous = (me + comm.size() - 1) % comm.size();
  for (const Index n : {0, 1, 23}) {
    CAPTURE(n);
    Operand<T> out(subject, values<T>(me, n));
    Operand<T> in(subject, untouched<T>(n));
    const Ledger sending(comm);
    Request outgoing = comm.start_send(out, next, Communicator::max_tag);
    sending.expect(CommOperation::send, n, 0, sizeof(T));
    const Ledger receiving(comm);
    comm.receive(in, previous, Communicator::max_tag);
    receiving.expect(CommOperation::receive, 0, n, sizeof(T));
    outgoing.wait();
    CHECK(in.values() == values<T>(previous, n));

    // Two messages of one tag keep their order; one of another tag may overtake them.
    Operand<T> first(subject, untouched<T>(n)), second(subject, untouched<T>(n)),
        other(subject, untouched<T>(n));
    Operand<T> out_2(subject, values<T>(me, n, 500)), out_3(subject, values<T>(me, n, 700));
    Request receive_other = comm.start_receive(other, previous, 5);
    Request receive_first = comm.start_receive(first, previous, 4);
    Request receive_second = comm.start_receive(second, previous, 4);
    Request sends[] = {comm.start_send(out, next, 4), comm.start_send(out_2, next, 4),
                       comm.start_send(out_3, next, 5)};
    receive_second.wait();
    receive_first.wait();
    receive_other.wait();
    for (Request& request : sends) request.wait();
    CHECK(first.values() == values<T>(previous, n));
    CHECK(second.values() == values<T>(previous, n, 500));
    CHECK(other.values() == values<T>(previous, n, 700));

    Operand<T> exchanged(subject, untouched<T>(n));
    comm.send_receive(out, next, exchanged, previous, 7);
    CHECK(exchanged.values() == values<T>(previous, n));
    if (comm.size() > 1 && me == 0) comm.send(out, comm.size() - 1);
    if (comm.size() > 1 && me == comm.size() - 1) {
      Operand<T> from_first(subject, untouched<T>(n));
      comm.receive(from_first, 0);
      CHECK(from_first.values() == values<T>(0, n));
    }
  }
}

}  // namespace gridlops::testing
