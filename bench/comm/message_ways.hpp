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

/// One way in which messages get from one rank to another.
class MessageWay {
 public:
  virtual ~MessageWay() = default;
  MessageWay(const MessageWay&) = delete;
  MessageWay& operator=(const MessageWay&) = delete;

  /// Moves so many messages of so many doubles, and synchronises, so often in a row. Both ranks call it; rank
  /// 0's time counts. Returns the seconds that rank 0 took to begin the messages.
  virtual double run(Index often, Index messages, Index doubles) = 0;

  /// This rank's doubles: rank 0's are sent, or are where it gets what it reads.
  virtual void write(const std::vector<double>& values) = 0;
  virtual std::vector<double> read(Index count) = 0;
  /// Whether rank 0 reads what rank 1 has, and not the other way round.
  virtual bool is_read() const { return false; }

 protected:
  MessageWay() = default;
};

/// A way by its name, and how it is made for a pair of ranks and messages of at most so many bytes together.
/// make() throws CommunicationError, perhaps on one rank alone, where MPI lacks it.
struct NamedWay {
  std::string name;
  std::function<std::unique_ptr<MessageWay>(MPI_Comm pair, const ProcessGrid& grid, Index bytes)> make;
};

/// "send", "copy", and put, get and accumulate in windows that MPI allocates or that memory is attached to,
/// with fences, locks or flushes; on a GPU "nccl".
std::vector<NamedWay> message_ways(const std::string& device);

/// Times two ways of the same thing in turn, with operands of 1 KiB and more, and writes the lists
/// "contests", with the times, and "crossovers": from which size on, and up to which, the first way is at
/// least a tenth faster (collective).
void find_crossovers(Communicator& world, ResultWriter& writer, Index most_bytes, int repetitions);

}  // namespace gridlops::bench
