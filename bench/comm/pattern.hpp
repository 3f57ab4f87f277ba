// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops::bench {

/// Numbers that each rank can compute for every rank, so it verifies its data alone. They are small integers:
/// their sums, products, minima and maxima are exact in every type. Their period is a prime number, and no
/// size of a block or piece is a multiple of it.
class Pattern {
 public:
  /// Each operation takes another seed, so that leftovers of an earlier one count as wrong.
  Pattern(int ranks, Index seed, ReduceOp reduction);

  /// One period of numbers.
  using Row = std::vector<double>;
  /// The numbers of one rank.
  const Row& of(int rank) const { return rows_[static_cast<std::size_t>(rank)]; }
  /// The reduction of all ranks' numbers.
  const Row& reduced() const { return reduced_; }
  /// The reduction of a rank's numbers and the previous rank's.
  const Row& with_previous(int rank) const { return pairs_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Row> rows_, pairs_;
  Row reduced_;
};

/// Elements first, first + 1, … of a repeated row.
struct Piece {
  const Pattern::Row* row = nullptr;
  Index first = 0, count = 0;
};

/// Never part of a pattern.
inline constexpr int never_given = -7;

/// Writes the pieces without gaps.
template <class Real>
void write(const std::vector<Piece>& pieces, Real* to) {
  for (const Piece& piece : pieces) {
    const auto period = static_cast<Index>(piece.row->size());
    Index k = piece.first % period;
    for (Index i = 0; i < piece.count; ++i, k = k + 1 == period ? 0 : k + 1)
      *to++ = static_cast<Real>((*piece.row)[static_cast<std::size_t>(k)]);
  }
}

/// Counts the numbers that differ from the pieces.
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
