// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/elements.hpp"

namespace gridlops {

/// Most elements of a basic type in one MPI call, whose counts are ints. Longer operands travel in chunks.
inline constexpr Index max_message_elements = GRIDLOPS_MAX_MESSAGE_ELEMENTS;

/// An MPI communicator, with what the text of an error needs.
struct MpiGroup {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int size = 1;

  /// Throws CommunicationError with the call, this rank and MPI's own text unless code is MPI_SUCCESS.
  void check(int code, const char* call, Index count) const;
};

MPI_Datatype mpi_type(ElementType type);
MPI_Op mpi_op(ReduceOp op);

/// The same array with complex numbers as pairs of reals: what counts and addresses below refer to.
inline Elements as_reals(const Elements& a) { return {a.data, a.count * a.reals_per_element, a.type}; }
inline ConstElements as_reals(const ConstElements& a) {
  return {a.data, a.count * a.reals_per_element, a.type};
}

/// `count` elements of an array of reals from `begin` on.
inline Elements slice(const Elements& a, Index begin, Index count) {
  return {static_cast<std::byte*>(a.data) + begin * size_of(a.type), count, a.type};
}
inline ConstElements slice(const ConstElements& a, Index begin, Index count) {
  return {static_cast<const std::byte*>(a.data) + begin * size_of(a.type), count, a.type};
}

/// Copies as many elements as both have; nothing is done where source and target are the same place.
void copy(const ConstElements& from, const Elements& to);

/// Calls action(begin, count) for the chunks that `total` elements travel in.
template <class Action>
void for_each_chunk(Index total, Action&& action) {
  for (Index begin = 0; begin < total; begin += max_message_elements) {
    action(begin, static_cast<int>(std::min(max_message_elements, total - begin)));
  }
}

/// One part per rank, one after the other: counts and offsets in reals.
class RankParts {
 public:
  RankParts(std::span<const Index> counts, int reals_per_element);
  /// `total` cut into parts whose sizes differ by at most one, larger first.
  static RankParts balanced(Index total, int ranks);

  int ranks() const { return static_cast<int>(offsets_.size()) - 1; }
  Index total() const { return offsets_.back(); }
  Index count(int rank) const { return offset(rank + 1) - offset(rank); }
  Index offset(int rank) const { return offsets_[static_cast<std::size_t>(rank)]; }

  template <class Array>
  Array of(const Array& all, int rank) const {
    return slice(all, offset(rank), count(rank));
  }

  /// For MPI calls, once the total is known to fit into an int.
  void write_counts(int* counts) const;
  void write_offsets(int* offsets) const;

 private:
  RankParts() = default;
  std::vector<Index> offsets_{0};
};

}  // namespace gridlops
