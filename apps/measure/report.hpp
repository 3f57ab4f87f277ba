// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/solve/solver.hpp"
#include "measure/run_record.hpp"

namespace gridlops::program {

/// One number per column, with its name.
using ColumnFigure = std::pair<std::string, std::vector<double>>;

/// The facts of a computation. The same on all ranks.
struct RunFacts {
  std::string command;
  GridShape grid;
  ProductShape shape;
  std::string device, transport;
  /// How a matrix was multiplied; none if the operator is not a matrix.
  struct Product {
    std::string algorithm, storage;
  };
  std::optional<Product> product{};
  std::string choices{};  ///< the source of choices between kernels, storages and passes
  /// The model's figures for each product, or for an iteration with all columns.
  struct Prediction {
    std::string per;      ///< "product" or "iteration"
    std::string machine;  ///< the machine of the model
    double seconds = 0;   ///< of the slowest rank
  };
  std::optional<Prediction> prediction{};
  std::vector<std::pair<std::string, double>> figures{};  ///< numbers of the result, with their names
  std::vector<ColumnFigure> column_figures{};
  std::string problem{};                ///< the problem, as a formula
  nlohmann::ordered_json options{};     ///< with the chosen values
  nlohmann::ordered_json sweep{};       ///< the results of a sweep; null if there was none
  nlohmann::ordered_json compressed{};  ///< what a compressed matrix means to the results; null if it is none
  std::vector<RunFile> files{};
  bool hashes = false;  ///< of the files
};

class Stopwatch {
 public:
  /// Seconds since the last lap, or since construction.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> seconds = now - begin_;
    begin_ = now;
    return seconds.count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// The measurements of one rank; zero on idle ranks.
struct Measurements {
  double read_seconds = 0, setup_seconds = 0, compute_seconds = 0, write_seconds = 0;
  Index bytes_sent = 0, bytes_received = 0;  ///< while computing
  Index bytes_read_from_peers = 0;           ///< the same
  double seconds_waiting = 0;                ///< of compute_seconds, in communication
  // For one of the predicted parts; negative if unknown.
  double predicted_part_seconds = -1;
  Index predicted_bytes_received = -1, counted_bytes_received = -1;
  Index planned_bytes = -1;  ///< of memory; negative if it was not planned

  /// Runs work on a rank of the grid until its results are complete, and records its time, traffic and waits.
  void compute(const ProcessGrid& grid, const std::function<void()>& work);
};

/// Writes the report as one JSON object, unless the path is empty; `solved` is null for a product
/// (collective). Throws OutputError on all ranks.
void write_report(Communicator& world, const std::string& path, const RunFacts& facts,
                  const Measurements& mine, const SolveReport* solved);

/// Writes the history as CSV, with a row for each active column of each iteration, unless the path is empty
/// (collective). Throws OutputError on all ranks.
void write_history(Communicator& world, const std::string& path, const SolveReport& solved);

}  // namespace gridlops::program
