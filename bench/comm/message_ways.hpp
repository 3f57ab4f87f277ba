// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/comm/windows.hpp"
#include "bench/measure/results.hpp"
#include "gridlops/comm/process_grid.hpp"

namespace gridlops::bench {

/// One way to move messages from one rank to another. Which of them the library takes, and why:
/// docs/decisions/0026-one-sided-sums.md.
class MessageWay {
 public:
  virtual ~MessageWay() = default;
  MessageWay(const MessageWay&) = delete;
  MessageWay& operator=(const MessageWay&) = delete;

  /// Moves `messages` messages of `doubles` doubles each and synchronises, `often` times in a row. Both ranks
  /// call it; rank 0's time counts. Returns the seconds that rank 0 took to begin the messages.
  virtual double run(Index often, Index messages, Index doubles) = 0;

  /// Sets this rank's doubles. Rank 0 sends its own, or reads rank 1's into them.
  virtual void write(const std::vector<double>& values) = 0;
  virtual std::vector<double> read(Index count) = 0;
  /// Whether rank 0 reads from rank 1. Otherwise it writes to rank 1.
  virtual bool is_read() const { return false; }

 protected:
  MessageWay() = default;
};

/// A way and its name. make() constructs it for a pair of ranks and for messages of at most `bytes` bytes
/// together. If MPI lacks the way, make() throws CommunicationError, perhaps on one rank alone.
struct NamedWay {
  std::string name;
  std::function<std::unique_ptr<MessageWay>(MPI_Comm pair, const ProcessGrid& grid, Index bytes)> make;
};

/// On a CPU: "send", "copy", and put, get and accumulate with fences, locks or flushes, in allocated windows
/// or in windows of attached memory. On a GPU: "nccl".
std::vector<NamedWay> message_ways(const std::string& device);

/// Times pairs of ways in turn, for operands from 1 KiB to most_bytes (collective). The list "contests" gets
/// the times. The list "crossovers" gets the sizes from which, and up to which, the first way is faster by at
/// least a tenth.
void find_crossovers(Communicator& world, ResultWriter& writer, Index most_bytes, int repetitions);

}  // namespace gridlops::bench
