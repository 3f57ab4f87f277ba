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
  send_receive,  ///< every rank to the next one
  get,           ///< every rank from the next one
  put,           ///< every rank to the next one
  accumulate     ///< the same
};

/// An operation that can be measured.
struct Operation {
  const char* name;
  Exchanged kind;
  bool is_uneven;  ///< rank r has r + 1 shares of the whole
  bool can_be_in_place, can_be_out_of_place;

  bool has_parts() const;
  bool reduces() const;
  bool has_root() const;
  bool is_one_sided() const;
  /// By what the rate S/t of an operand of S bytes is multiplied to get that of a rank's link, whatever their
  /// number, as nccl-tests does (doc/PERFORMANCE.md there).
  double bus_factor(int ranks) const;
};
const std::vector<Operation>& all_operations();

/// A type that travels.
struct TravelType {
  const char* name;
  ElementType real;
  int reals;

  Index size() const { return size_of(real) * reals; }
};
const std::vector<TravelType>& travel_types();

/// What an operation is measured with.
struct Operands {
  TravelType type;
  ReduceOp reduction = ReduceOp::sum;
  int root = 0;
  bool in_place = false;
  Index count = 0;  ///< elements of the whole operand
};

/// One operation on the ranks of a communicator, with operands in a backend's memory that every rank
/// verifies.
class Exchange {
 public:
  /// Throws OutOfMemory on this rank alone.
  Exchange(Communicator& comm, const std::shared_ptr<Backend>& backend, const Operation& operation,
           const Operands& operands);
  ~Exchange();

  /// Makes the window of a one-sided operation (collective over comm, whose ranks those of mpi are). Throws
  /// as Window does.
  void open_window(MPI_Comm mpi);

  /// Gives every rank ones, with which the operation can be repeated without end.
  void prepare();

  /// Carries it out, until this rank's part is complete.
  void run();
  void synchronize() { backend_->synchronize(); }

  /// Gives every rank numbers to exchange, carries it out, and counts the numbers on this rank that are
  /// wrong.
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
  std::vector<std::byte> host_;  // what goes to the operands, or comes from them
  std::unique_ptr<Window> window_;
  std::unique_ptr<AccessToAll> access_;
  std::byte *in_ = nullptr, *out_ = nullptr;
};

/// Samples of one operation, each the mean of so many in a row, on the slowest rank of a grid.
struct ExchangeTimes {
  Index in_a_row = 1;
  std::vector<double> seconds{};
};

/// Times an exchange, after prepare(), over and over again for about a millisecond in each sample (collective
/// over the grid).
ExchangeTimes time_exchange(const ProcessGrid& grid, Exchange& exchange, int warm_up, int repetitions);

}  // namespace gridlops::bench
