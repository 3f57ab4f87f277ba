// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/comm/grid_shape.hpp"

#include <algorithm>
#include <charconv>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

/// The whole text as a number; 0 if it is none.
int whole_number(const char* begin, const char* end) {
  int value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value);
  return error == std::errc() && stop == end ? value : 0;
}

}  // namespace

GridShape parse_grid_shape(const std::string& text) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  const char* cross = std::find_if(begin, end, [](char c) { return c == 'x' || c == 'X'; });
  const GridShape shape =
      cross == end ? GridShape{0, 0} : GridShape{whole_number(begin, cross), whole_number(cross + 1, end)};
  require<UsageError>(
      shape.rows > 0 && shape.cols > 0, "'", text,
      "' is no shape of a process grid: two positive numbers with an x between them are needed, as 2x3");
  int size = 0;
  require<UsageError>(
      !__builtin_mul_overflow(shape.rows, shape.cols, &size), "the process grid '", text,
      "' has more ranks than can be counted; P x Q must be at most the number of ranks of the job");
  return shape;
}

GridShape near_square(int ranks) {
  require<UsageError>(ranks > 0, "a process grid of ", ranks,
                      " ranks cannot be formed; at least one is needed");
  int rows = 1;
  for (int divisor = 2; divisor <= ranks / divisor; ++divisor) {
    if (ranks % divisor == 0) rows = divisor;
  }
  return {rows, ranks / rows};
}

}  // namespace gridlops
