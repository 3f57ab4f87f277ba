// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/communicator.hpp"
#include "gridlops/cost_model.hpp"
#include "gridlops/solver.hpp"

namespace gridlops::program {

/// What was computed and how, the same on all ranks.
struct RunFacts {
  std::string command;
  GridShape grid;
  ProductShape shape;
  Algorithm algorithm = Algorithm::automatic;
  Storage storage = Storage::columns;
  std::string device, transport;
};

/// One rank's: zero on idle ranks.
struct Measurements {
  double read_seconds = 0, setup_seconds = 0, compute_seconds = 0, write_seconds = 0;
  Index bytes_sent = 0, bytes_received = 0;  ///< while computing
};

/// Writes the report, if it has a path, as one JSON object; `solved` is null for a product (collective).
/// Throws OutputError on all ranks.
void write_report(Communicator& world, const std::string& path, const RunFacts& facts,
                  const Measurements& mine, const SolveReport* solved);

/// Writes the history, if it has a path, as CSV with a row for each column that was active in an iteration
/// (collective). Throws OutputError on all ranks.
void write_history(Communicator& world, const std::string& path, const SolveReport& solved);

}  // namespace gridlops::program
