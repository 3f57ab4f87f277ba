// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstring>

#include "comm/communicator_contract.hpp"

// The contract of every Communicator, part 2: reductions. Each function is collective over the subject.

namespace gridlops::testing {

template <class T>
std::vector<ReduceOp> reductions_of() {
  if (is_complex<T>) return {ReduceOp::sum};
  return {ReduceOp::sum, ReduceOp::prod, ReduceOp::min, ReduceOp::max};
}

/// Numbers whose sums and products depend on the order in which they are combined.
template <class T>
T order_sensitive(int rank, Index i) {
  const double mantissa = 1.0 + static_cast<double>((i * 3 + rank * 5) % 11) / 7.0;
  const double x =
      std::ldexp(rank % 2 == 0 ? mantissa : -mantissa, static_cast<int>((i + rank * 9) % 31) - 15);
  if constexpr (is_complex<T>) {
    return {static_cast<Real<T>>(x), static_cast<Real<T>>(x / 3)};
  } else {
    return static_cast<T>(x);
  }
}

/// The contributions of all ranks. Their result is exact in any order, or shows the order.
template <class T>
T contribution(ReduceOp op, ReductionOrder order, int rank, Index i) {
  if constexpr (std::same_as<T, float> || std::same_as<T, double> || is_complex<T>) {
    if (order == ReductionOrder::by_rank) return order_sensitive<T>(rank, i);
  }
  if constexpr (!is_complex<T>) {
    if (op == ReduceOp::prod) return static_cast<T>((rank + i) % 3 + 1);
  }
  return value<T>(rank, i);
}

template <class T>
std::vector<T> contributions(ReduceOp op, ReductionOrder order, int rank, Index count) {
  std::vector<T> result;
  for (Index i = 0; i < count; ++i) result.push_back(contribution<T>(op, order, rank, i));
  return result;
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  if constexpr (!is_complex<T>) {
    if (op == ReduceOp::prod) return static_cast<T>(a * b);
    if (op == ReduceOp::min) return b < a ? b : a;
    if (op == ReduceOp::max) return a < b ? b : a;
  }
  return static_cast<T>(a + b);
}

/// Elements [begin, begin + count) of the result, combined in rank order.
template <class T>
std::vector<T> reduced(ReduceOp op, ReductionOrder order, int ranks, Index count, Index begin = 0) {
  std::vector<T> result;
  for (Index i = begin; i < begin + count; ++i) {
    T total = contribution<T>(op, order, 0, i);
    for (int rank = 1; rank < ranks; ++rank) total = combine(op, total, contribution<T>(op, order, rank, i));
    result.push_back(total);
  }
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Calls check(op, order, form) for all that T allows.
template <class T, class Check>
void for_each_reduction(Check&& check) {
  for (const ReduceOp op : reductions_of<T>()) {
    for (const ReductionOrder order : {ReductionOrder::any, ReductionOrder::by_rank}) {
      for (const Form form : forms) {
        CAPTURE(op, order, form);
        check(op, order, form);
      }
    }
  }
}

template <class T>
void check_reduce(const Subject& subject, const std::vector<Index>& lengths) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  for_each_reduction<T>([&](ReduceOp op, ReductionOrder order, Form form) {
    for (int root = 0; root < comm.size(); ++root) {
      for (const Index n : lengths) {
        for (const bool in_place : {false, true}) {
          CAPTURE(root, n, in_place);
          const bool am_root = me == root;
          Operand<T> in(subject, contributions<T>(op, order, me, n));
          Operand<T> separate(subject, untouched<T>(am_root ? n : 0));
          const Elements out = in_place && am_root ? Elements(in) : Elements(separate);
          const Ledger ledger(comm);
          perform(
              form, me, [&] { comm.reduce(in, out, op, root, order); },
              [&] { return comm.start_reduce(in, out, op, root, order); });
          if (am_root) {
            CHECK(same_bits((in_place ? in : separate).values(), reduced<T>(op, order, comm.size(), n)));
          } else {
            CHECK(same_bits(in.values(), contributions<T>(op, order, me, n)));
          }
          ledger.expect(CommOperation::reduce, am_root ? 0 : n, am_root ? n * (comm.size() - 1) : 0,
                        sizeof(T));
        }
      }
    }
  });
}

template <class T>
void check_all_reduce(const Subject& subject, const std::vector<Index>& lengths = {0, 1, 2, 9, 40}) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  const int size = comm.size();
  for_each_reduction<T>([&](ReduceOp op, ReductionOrder order, Form form) {
    for (const Index n : lengths) {
      CAPTURE(n);
      Operand<T> data(subject, contributions<T>(op, order, me, n));
      const Ledger ledger(comm);
      perform(
          form, me, [&] { comm.all_reduce(data, op, order); },
          [&] { return comm.start_all_reduce(data, op, order); });
      CHECK(same_bits(data.values(), reduced<T>(op, order, size, n)));
      const Index own = n / size + (me < n % size ? 1 : 0);
      const Index moved = own * (size - 1) + n - own;
      ledger.expect(CommOperation::all_reduce, moved, moved, sizeof(T));
    }
  });
}

template <class T>
void check_reduce_scatter(const Subject& subject, Index times = 1) {
  Communicator& comm = *subject.comm;
  const int me = comm.rank();
  const int size = comm.size();
  for_each_reduction<T>([&](ReduceOp op, ReductionOrder order, Form form) {
    for (int pattern = 0; pattern < count_patterns; ++pattern) {
      auto counts = uneven_counts(size, pattern);
      for (Index& count : counts) count *= times;
      const Index mine_count = count_of(counts, me);
      const Index begin = offset_of(counts, me);
      // Only some ranks have their part in place: each rank chooses by itself.
      for (const int in_place_from : {0, 1, size}) {
        CAPTURE(pattern, in_place_from);
        const bool in_place = me >= in_place_from;
        Operand<T> all(subject, contributions<T>(op, order, me, sum(counts)));
        Operand<T> separate(subject, untouched<T>(mine_count));
        const Elements mine = in_place ? all.part(begin, mine_count) : Elements(separate);
        const Ledger ledger(comm);
        perform(
            form, me, [&] { comm.reduce_scatter_v(all, counts, mine, op, order); },
            [&] { return comm.start_reduce_scatter_v(all, counts, mine, op, order); });
        const auto expected = reduced<T>(op, order, size, mine_count, begin);
        auto all_expected = contributions<T>(op, order, me, sum(counts));
        if (in_place) {
          std::copy(expected.begin(), expected.end(), all_expected.begin() + begin);
        } else {
          CHECK(same_bits(separate.values(), expected));
        }
        CHECK(same_bits(all.values(), all_expected));
        ledger.expect(CommOperation::reduce_scatter, sum(counts) - mine_count, mine_count * (size - 1),
                      sizeof(T));
      }
    }
  });
  constexpr auto op = ReduceOp::sum;
  constexpr auto order = ReductionOrder::by_rank;
  Operand<T> all(subject, contributions<T>(op, order, me, 5 * size));
  Operand<T> mine(subject, untouched<T>(5));
  comm.reduce_scatter(all, mine, op, order);
  CHECK(same_bits(mine.values(), reduced<T>(op, order, size, 5, 5 * me)));
}

/// Checks that the numbers of the ordered checks distinguish orders.
template <class T>
void check_that_order_shows(int ranks) {
  if (ranks < 3) return;
  std::vector<T> backwards;
  for (Index i = 0; i < 40; ++i) {
    T total = order_sensitive<T>(ranks - 1, i);
    for (int rank = ranks - 2; rank >= 0; --rank) total += order_sensitive<T>(rank, i);
    backwards.push_back(total);
  }
  CHECK_FALSE(same_bits(backwards, reduced<T>(ReduceOp::sum, ReductionOrder::by_rank, ranks, 40)));
}

}  // namespace gridlops::testing
