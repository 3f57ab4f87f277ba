// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <algorithm>

#include "comm/rank_parts.hpp"
#include "gridlops/communicator.hpp"
#include "gridlops/elements.hpp"

namespace gridlops {

/// Most elements of a basic type in one MPI call, whose counts are ints. Longer operands travel in chunks.
extern const Index max_message_elements;

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

/// Copies as many elements as both have; nothing is done where source and target are the same place.
void copy(const ConstElements& from, const Elements& to);

/// Calls action(begin, count) for the chunks that `total` elements travel in.
template <class Action>
void for_each_chunk(Index total, Action&& action) {
  for (Index begin = 0; begin < total; begin += max_message_elements) {
    action(begin, static_cast<int>(std::min(max_message_elements, total - begin)));
  }
}

}  // namespace gridlops
