// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/counters.hpp"
#include "gridlops/types.hpp"

namespace gridlops {

/// As messages name it: "all_reduce".
const char* name_of(CommOperation operation);

/// What this process communicated last, for the message with which it may have to end. Kept by the public
/// door of Communicator and by Request, on the one thread that communicates.
struct OperationRecord {
  enum class State { none, running, waiting, returned };

  State state = State::none;
  CommOperation operation{};
  Index bytes = 0;  ///< of the operand on this rank
  int peer = -1;    ///< the root, destination or source, if there is one
  int rank = 0, size = 0;

  /// "in broadcast (800 bytes, root 2; rank 1 of 4)"; empty if there was none.
  std::string text() const;
};

OperationRecord& last_operation();

}  // namespace gridlops
