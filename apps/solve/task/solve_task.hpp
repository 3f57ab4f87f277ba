// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/grid.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/plan.hpp"
#include "matrix/matrix_file.hpp"
#include "solve/checkpointing.hpp"
#include "solve/sweep.hpp"

namespace gridlops::program {

/// Everything that all ranks know before they read a matrix.
struct SolveTask {
  SolveArguments arguments;  ///< with the algorithm and the panel width of the run that a restart continues
  MatrixFile A;
  std::optional<MatrixFile> original;  ///< with --certify: what the compressed A was made of
  MatrixHeader B;
  std::optional<MatrixHeader> X0;
  std::string promotions;  ///< lines about files whose elements become another type
  CheckpointFacts saved;   ///< of the run that a restart continues
  Sweep sweep;
  std::vector<double> tolerances;  ///< of each column; empty: all have one
  ProductShape shape;
  std::string why_solver;  ///< with --solver auto
  std::string choices;     ///< the source of choices between kernels, storages and passes
  std::string machine_source;
  MachineModel machine;  ///< with the memory that ranks of the grid share
  PlannedIteration iteration;
  std::shared_ptr<const ProcessGrid> grid;
  std::shared_ptr<const ProcessGrid> own_memory{};  ///< the same, in which no rank shares its memory
  std::string why_disk{};                           ///< a line, if the program put A there
  Index memory_of_tiles = 0;                        ///< as in StreamOptions, for a matrix on disks
  bool in_place = false;                            ///< as there
  double disk_rate = 0;  ///< measured: bytes in a second, from the disks of all ranks; 0: it was not

  bool is_on_disk() const { return iteration.place == MatrixPlace::disk; }
  /// The matrix whose elements are read, for which verdicts then are; null if there is none.
  const MatrixFile* elements() const { return original ? &*original : A.is_compressed() ? nullptr : &A; }
  /// How the run keeps A.
  KeptMatrix kept() const;
  /// Plans the iteration again, with A on disks.
  void put_on_disk();
};

/// Reads the headers of all inputs, and makes the choices that the arguments leave open (collective over
/// world). Throws InputError or UsageError on all ranks, also if a restart has other options than its run.
SolveTask read_task(Communicator& world, const SolveArguments& arguments, const Ranks& ranks);

Layout layout_of_matrix(const SolveTask& task);

}  // namespace gridlops::program
