// SPDX-License-Identifier: BSD-3-Clause
#include "comm/rank_order.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace gridlops {

namespace {

constexpr Index block = 1024;  // how many sums stay in the cache while the contributions stream by

template <class T, class Combine>
void reduce_as(const std::vector<const void*>& contributions, Combine combine, T* out, Index count) {
  std::array<T, block> sums;
  for (Index begin = 0; begin < count; begin += block) {
    const Index n = std::min(block, count - begin);
    std::copy_n(static_cast<const T*>(contributions.front()) + begin, n, sums.data());
    for (std::size_t rank = 1; rank < contributions.size(); ++rank) {
      const T* x = static_cast<const T*>(contributions[rank]) + begin;
      std::transform(sums.data(), sums.data() + n, x, sums.data(), combine);
    }
    std::copy_n(sums.data(), n, out + begin);
  }
}

template <class T>
void reduce_as(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out) {
  T* target = static_cast<T*>(out.data);
  switch (op) {
    case ReduceOp::sum:
      return reduce_as(contributions, std::plus<T>(), target, out.count);
    case ReduceOp::prod:
      return reduce_as(contributions, std::multiplies<T>(), target, out.count);
    case ReduceOp::min:
      return reduce_as(
          contributions, [](T a, T b) { return std::min(a, b); }, target, out.count);
    case ReduceOp::max:
      return reduce_as(
          contributions, [](T a, T b) { return std::max(a, b); }, target, out.count);
  }
}

}  // namespace

void reduce_in_rank_order(const std::vector<const void*>& contributions, ReduceOp op, const Elements& out) {
  switch (out.type) {
    case ElementType::i32:
      return reduce_as<std::int32_t>(contributions, op, out);
    case ElementType::i64:
      return reduce_as<std::int64_t>(contributions, op, out);
    case ElementType::f32:
      return reduce_as<float>(contributions, op, out);
    case ElementType::f64:
      return reduce_as<double>(contributions, op, out);
    case ElementType::byte:
      break;  // refused by CallAccount
  }
}

}  // namespace gridlops
