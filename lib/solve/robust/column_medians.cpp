// SPDX-License-Identifier: BSD-3-Clause
#include "solve/robust/column_medians.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/numbers.hpp"

namespace gridlops {

namespace {

constexpr int digit_bits = 8;
constexpr std::size_t digits = std::size_t{1} << digit_bits;

/// A value that is being found: the bits that are known, and its rank among values that begin with them.
struct Search {
  Index rank = 0, count = 0;
  std::uint64_t bits = 0;
};

/// The bits of numbers ≥ 0 are ordered as they are.
std::uint64_t bits_of(double value) { return std::bit_cast<std::uint64_t>(value); }

class Medians {
 public:
  Medians(Communicator& comm, const ColumnValues& mine, Range columns)
      : comm_(comm), mine_(mine), columns_(columns), searches_(at(columns.size)) {}

  std::vector<double> find() {
    for (int shift = 64 - digit_bits; shift >= 0; shift -= digit_bits) find_digit(shift);
    return with_upper();
  }

 private:
  /// Calls visit(k, bits) for this rank's values of column columns_.begin + k.
  template <class Visit>
  void for_each_value(const Visit& visit) const {
    if (!mine_.counts || mine_.rows == 0) return;
    const Index held = static_cast<Index>(mine_.values.size()) / mine_.rows;
    for (Index c = std::max<Index>(0, columns_.begin - mine_.first);
         c < std::min(held, columns_.begin + columns_.size - mine_.first); ++c)
      for (const double value : mine_.values.subspan(at(c * mine_.rows), at(mine_.rows)))
        if (!(value <= 0)) visit(at(mine_.first + c - columns_.begin), bits_of(value));
  }

  void find_digit(int shift) {
    const bool is_first = shift == 64 - digit_bits;
    std::vector<Index> counts(digits * searches_.size(), 0);
    for_each_value([&](std::size_t k, std::uint64_t bits) {
      if (is_first || (bits ^ searches_[k].bits) >> (shift + digit_bits) == 0)
        ++counts[digits * k + (bits >> shift) % digits];
    });
    comm_.all_reduce(counts, ReduceOp::sum);
    for (std::size_t k = 0; k < searches_.size(); ++k) {
      Search& search = searches_[k];
      const auto of_column = std::span(counts).subspan(digits * k, digits);
      if (is_first) {
        for (const Index count : of_column) search.count += count;
        search.rank = std::max<Index>(0, (search.count - 1) / 2);
      }
      std::uint64_t digit = 0;
      while (digit + 1 < digits && search.rank >= of_column[digit]) search.rank -= of_column[digit++];
      search.bits |= digit << shift;
    }
  }

  /// Of an even number of values the lower one in the middle has been found. The upper one is the same if it
  /// stands there more often, else the next.
  std::vector<double> with_upper() {
    std::vector<Index> same(searches_.size(), 0);
    std::vector<double> next(searches_.size(), std::numeric_limits<double>::infinity());
    for_each_value([&](std::size_t k, std::uint64_t bits) {
      if (bits == searches_[k].bits) ++same[k];
      if (bits > searches_[k].bits) next[k] = std::min(next[k], std::bit_cast<double>(bits));
    });
    comm_.all_reduce(same, ReduceOp::sum);
    comm_.all_reduce(next, ReduceOp::min);
    std::vector<double> medians;
    for (std::size_t k = 0; k < searches_.size(); ++k) {
      const Search& search = searches_[k];
      const double lower = std::bit_cast<double>(search.bits);
      const bool has_upper = search.count % 2 == 0 && search.rank + 1 >= same[k];
      medians.push_back(search.count == 0 ? 0 : has_upper ? lower / 2 + next[k] / 2 : lower);
    }
    return medians;
  }

  Communicator& comm_;
  const ColumnValues& mine_;
  const Range columns_;
  std::vector<Search> searches_;
};

}  // namespace

std::vector<double> column_medians(Communicator& comm, const ColumnValues& mine, Index columns) {
  constexpr Index at_once = 512;  // their counts take a MiB
  std::vector<double> medians;
  for (Index begin = 0; begin < columns; begin += at_once) {
    const Range some{begin, std::min(at_once, columns - begin)};
    const std::vector<double> found = Medians(comm, mine, some).find();
    medians.insert(medians.end(), found.begin(), found.end());
  }
  return medians;
}

}  // namespace gridlops
