// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops::bench {

/// Numbers that each rank can compute for every rank, so that it verifies by itself what it got. They are
/// small and whole: sums, products, minima and maxima of them are exact in every type. They repeat after a
/// prime number of elements, of which no size of a block or a piece is a multiple.
class Pattern {
 public:
  /// Another seed gives other numbers, so that what an earlier operation left is seen to be wrong.
  Pattern(int ranks, Index seed, ReduceOp reduction);

  /// One period of numbers.
  using Row = std::vector<double>;
  /// What a rank gives.
  const Row& of(int rank) const { return rows_[static_cast<std::size_t>(rank)]; }
  /// The reduction of what all ranks give.
  const Row& reduced() const { return reduced_; }
  /// The reduction of what a rank and the one before it give.
  const Row& with_previous(int rank) const { return pairs_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Row> rows_, pairs_;
  Row reduced_;
};

/// The elements first, first + 1, … of a pattern that repeats a row.
struct Piece {
  const Pattern::Row* row = nullptr;
  Index first = 0, count = 0;
};

/// Never part of a pattern.
inline constexpr int never_given = -7;

/// Writes the pieces one after the other.
template <class Real>
void write(const std::vector<Piece>& pieces, Real* to) {
  for (const Piece& piece : pieces) {
    const auto period = static_cast<Index>(piece.row->size());
    Index k = piece.first % period;
    for (Index i = 0; i < piece.count; ++i, k = k + 1 == period ? 0 : k + 1)
      *to++ = static_cast<Real>((*piece.row)[static_cast<std::size_t>(k)]);
  }
}

/// How many numbers are not those of the pieces.
template <class Real>
Index count_wrong(const std::vector<Piece>& pieces, const Real* found) {
  Index wrong = 0;
  for (const Piece& piece : pieces) {
    const auto period = static_cast<Index>(piece.row->size());
    Index k = piece.first % period;
    for (Index i = 0; i < piece.count; ++i, k = k + 1 == period ? 0 : k + 1)
      wrong += *found++ == static_cast<Real>((*piece.row)[static_cast<std::size_t>(k)]) ? 0 : 1;
  }
  return wrong;
}

}  // namespace gridlops::bench
