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
#include "solve/task/placement.hpp"

namespace gridlops::program {

/// Everything that all ranks know before they read a matrix. It does not change after make_task().
struct SolveTask {
  SolveArguments arguments;  ///< with the algorithm and the panel width of the run that a restart continues
  MatrixFile A;
  std::optional<MatrixFile> original{};  ///< with --certify: what the compressed A was made of
  MatrixHeader B;
  std::optional<MatrixHeader> X0{}, W{};
  std::optional<MatrixHeader> lower{}, upper{};  ///< of bounds in files
  std::string promotions{};                      ///< lines about files whose elements become another type
  CheckpointFacts saved{};                       ///< of the run that a restart continues
  Sweep sweep{};
  std::vector<double> tolerances{};  ///< of each column; empty: all have one
  ProductShape shape{};
  std::string why_solver{};  ///< with --solver auto
  /// With --solver auto, the seconds after which direct takes the place of the solver; none: it never does.
  std::optional<double> patience{};
  std::string choices{};  ///< the source of choices between kernels, storages and passes
  std::string machine_source{};
  MachineModel machine{};                           ///< with the memory that ranks of the grid share
  std::shared_ptr<const ProcessGrid> own_memory{};  ///< the grid, in which no rank shares its memory
  Placement placed{};

  const std::shared_ptr<const ProcessGrid>& grid() const { return placed.grid; }
  const PlannedIteration& iteration() const { return placed.iteration; }
  bool is_on_disk() const { return placed.iteration.place == MatrixPlace::disk; }
  /// The matrix whose elements are read, for which verdicts then are; null if there is none.
  const MatrixFile* elements() const { return original ? &*original : A.is_compressed() ? nullptr : &A; }
  /// How the run keeps A.
  KeptMatrix kept() const;
  /// The same with A on disks, where its iteration is planned again.
  Placement on_disk() const;
};

/// Reads the headers of all inputs, makes the choices that the arguments leave open, and finds room for A
/// (collective over world). Throws InputError or UsageError on all ranks, also if a restart has other options
/// than its run.
SolveTask make_task(Communicator& world, const SolveArguments& given, const Ranks& ranks);

Layout layout_of_matrix(const SolveTask& task);

}  // namespace gridlops::program
