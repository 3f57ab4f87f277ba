// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "gridlops/base/counters.hpp"
#include "gridlops/base/export.hpp"

namespace gridlops {

/// The name in messages: "all_reduce".
const char* name_of(CommOperation operation);

/// One operation in which this process takes part, for the last messages of a job. Ranks send it to each
/// other unchanged.
struct OperationRecord {
  using Clock = std::chrono::steady_clock;
  enum class State : std::int32_t { none, running, waiting, returned, leaving };

  State state = State::none;
  CommOperation operation{};
  Index number = 0;        ///< among the collective operations of its communicator, from 1; 0 for messages
  Index bytes = 0;         ///< of the operand on this rank
  std::int32_t peer = -1;  ///< the root, destination or source, if there is one
  std::int32_t rank = 0, size = 0;
  Clock::time_point begin{};

  /// "in broadcast #3 (800 bytes, root 2; rank 1 of 4)"; empty if there was none.
  std::string text() const;
  /// Returns that text without the parts that differ between the ranks of one collective operation.
  std::string text_of_all_ranks() const;

 private:
  std::string text(const std::string& rank_and_size) const;
};

/// The latest operations of this process. CallAccount and Request record them, on the one thread that
/// communicates. Another thread may read them while that thread is away (Away). Recording allocates nothing.
class FlightRecorder {
 public:
  const OperationRecord& last() const { return ring_[count_ % ring_.size()]; }

  void begin(const OperationRecord& record) { ring_[++count_ % ring_.size()] = record; }
  /// Sets the state of the last operation.
  void set_state(OperationRecord::State state) { ring_[count_ % ring_.size()].state = state; }

  /// The operations before the last one, newest first, and how long ago each began.
  std::string history(OperationRecord::Clock::time_point now) const;

 private:
  std::array<OperationRecord, 64> ring_{};
  std::uint64_t count_ = 0;
};

/// The recorder of this process.
GRIDLOPS_EXPORT FlightRecorder& flight_recorder();

}  // namespace gridlops
