// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/comm/pattern.hpp"
#include "bench/comm/windows.hpp"
#include "gridlops/base/counters.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops::bench {

enum class Exchanged {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  gather,
  scatter,
  all_to_all,
  send_receive,  ///< every rank sends to the next
  get,           ///< every rank reads from the next
  put,           ///< every rank writes to the next
  accumulate     ///< every rank reduces into the next
};

/// An operation to measure.
struct Operation {
  const char* name;
  Exchanged kind;
  bool is_uneven;  ///< rank r has r + 1 shares of the whole
  bool can_be_in_place, can_be_out_of_place;

  bool has_parts() const;
  bool reduces() const;
  bool has_root() const;
  bool is_one_sided() const;
  /// Multiplies the rate S/t of an operand of S bytes to give the rate of a rank's link, for any number of
  /// ranks. nccl-tests defines it (doc/PERFORMANCE.md there).
  double bus_factor(int ranks) const;
};
const std::vector<Operation>& all_operations();

/// A type of the elements that travel.
struct TravelType {
  const char* name;
  ElementType real;
  int reals;

  Index size() const { return size_of(real) * reals; }
};
const std::vector<TravelType>& travel_types();

/// The operands of a measured operation.
struct Operands {
  TravelType type;
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
  bool in_place = false;
  Index count = 0;  ///< elements of the whole operand
};

/// One operation on the ranks of a communicator. The operands lie in a backend's memory, and every rank
/// verifies its own.
class Exchange {
 public:
  /// Throws OutOfMemory on this rank alone.
  Exchange(Communicator& comm, const std::shared_ptr<Backend>& backend, const Operation& operation,
           const Operands& operands);
  ~Exchange();

  /// Makes the window of a one-sided operation (collective over comm; mpi has the same ranks). Throws as
  /// Window does.
  void open_window(MPI_Comm mpi);

  /// Fills the operands with ones, so that the operation can run any number of times.
  void prepare();

  /// Runs the operation. Returns when this rank's part is complete.
  void run();
  void synchronize() { backend_->synchronize(); }

  /// Fills the operands with a pattern, runs the operation, and counts the wrong numbers on this rank.
  Index wrong(Index seed);

 private:
  struct Plan;

  Plan plan_for(const Pattern& pattern) const;
  void run_one_sided();
  Elements elements(std::byte* data, Index count) const {
    return {data, count, operands_.type.real, operands_.type.reals};
  }
  void fill(const Plan& plan);
  Index count_wrong(const Plan& plan);

  Communicator& comm_;
  std::shared_ptr<Backend> backend_;
  const Operation& operation_;
  Operands operands_;
  std::vector<Index> counts_, offsets_;              // of the ranks' parts of the whole
  std::vector<Index> send_counts_, receive_counts_;  // of all-to-all
  Index in_count_ = 0, out_count_ = 0;               // elements on this rank
  Buffer<std::byte> memory_, more_memory_;
  std::vector<std::byte> host_;  // what upload and download move
  std::unique_ptr<Window> window_;
  std::unique_ptr<AccessToAll> access_;
  std::byte *in_ = nullptr, *out_ = nullptr;
};

/// Samples of one operation on the slowest rank of a grid. Each is the mean of `in_a_row` operations.
struct ExchangeTimes {
  Index in_a_row = 1;
  std::vector<double> seconds{};
};

/// Times an exchange after prepare(). Each sample repeats it for about 1 ms (collective over the grid).
ExchangeTimes time_exchange(const ProcessGrid& grid, Exchange& exchange, int warm_up, int repetitions);

}  // namespace gridlops::bench
