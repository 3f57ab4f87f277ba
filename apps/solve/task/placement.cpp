// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "machine/limits.hpp"
#include "machine/memory_limit.hpp"
#include "solve/certify.hpp"
#include "solve/matrix_of_task.hpp"

namespace gridlops::program {

namespace {

using BytesOfRank = std::function<Index(int row, int col)>;

/// Of the space of all right-hand sides and dampings.
template <Scalar T>
BytesOfRank space_bytes(const SolveTask& task) {
  const SweepArguments& sweep = task.arguments.sweep;
  const OperatorPtr<T> op = make_operator(task, planned_product<T>(task));
  const Index all = std::min(op->rows(), op->cols());
  const Index vectors = sweep.space_dimension > 0 ? std::min(sweep.space_dimension, all) : all;
  const Index columns = task.shape.nrhs + (sweep.rule == DampingRule::gcv ? 1 : 0);
  return [op, columns, vectors](int row, int col) {
    return solution_space_bytes(*op, columns, vectors, row, col);
  };
}

/// Of a sketch, or of a proof, for --sigma-min; none if it needs neither.
template <Scalar T>
BytesOfRank sigma_min_bytes(const SolveTask& task) {
  if (task.arguments.proves_sigma_min()) {
    const Index bytes = proven_sigma_min_bytes(task.shape.rows, task.shape.cols, task.shape.type,
                                               task.grid()->shape().size());
    return [bytes](int, int) { return bytes; };
  }
  if (!task.arguments.sketches()) return {};
  return [product = planned_product<T>(task)](int row, int col) {
    return probable_sigma_min_bytes(*product, row, col);
  };
}

/// Of the norms by which columns of a matrix on disks are scaled.
template <Scalar T>
BytesOfRank norms_bytes(const SolveTask& task, const Layout& layout) {
  return [layout, grid = task.grid(), cols = task.shape.cols](int row, int col) {
    return column_norms_bytes<T>(cols, layout.row_range(*grid, row, col).size,
                                 layout.col_range(*grid, row, col).size);
  };
}

/// Whether the solve needs nothing of A but products by stationary-a in host memory, and norms of columns.
bool may_be_on_disk(const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  return arguments.certify.empty() && arguments.product.device == "cpu" && !arguments.verify_matrix &&
         may_be(arguments.product.algorithm, Algorithm::stationary_a);
}

/// Estimates the bytes that others take after the plan is made: libraries and texts, and MPI, which has two
/// copies of what it sums over ranks.
Index taken_by_others(const SolveTask& task) {
  constexpr Index texts = Index{6} << 20;
  const ProcessGrid& grid = *task.grid();
  const Index columns = task.kept().columns;
  const Index models = grid.rows() > 1 ? 2 * task.shape.cols / grid.cols() : 0;
  const Index data = grid.cols() > 1 ? task.shape.rows / grid.rows() : 0;
  return texts + task.A.bytes_of_tables(grid.shape()) +
         2 * std::max(models, data) * columns * size_of(task.shape.type);
}

Index bytes_on_disk(const SolveTask& task) {
  const KeptMatrix kept = task.kept();
  Index bytes = 0;
  for (int row = 0; row < kept.grid.rows; ++row)
    for (int col = 0; col < kept.grid.cols; ++col) bytes += task.A.sizes_on_disk(kept, row, col).disk;
  return bytes;
}

/// Whether A stays in its file (collective over world): its parts there are long, and no directory is named
/// where it is to go. A disk reads parts of this length at its full rate.
bool stays_in_file(Communicator& world, const SolveTask& task) {
  constexpr Index long_enough = Index{64} << 10;
  const SolveArguments& arguments = task.arguments;
  const MatrixFile& A = task.A;
  if (A.is_compressed() || !arguments.scratch.empty() || !arguments.tiles.empty() ||
      task.shape.type != A.header().type)
    return false;
  return in_place_run(world, A.name(), A.header(), task.grid()->shape()) >= long_enough;
}

/// The directory where A goes, or the one where that will be made.
std::string place_of_tiles(const SolveArguments& arguments) {
  if (arguments.tiles.empty()) return arguments.scratch;
  std::error_code none;
  std::filesystem::path place = std::filesystem::absolute(arguments.tiles, none);
  while (!std::filesystem::is_directory(place, none) && place.has_relative_path())
    place = place.parent_path();
  return place;
}

/// Measures how fast the disks deliver A, in the memory that is for A (collective over world).
void measure_disks(Communicator& world, const SolveTask& task, Placement& placed) {
  const Index most = world.size() * (Index{128} << 20);
  std::array<Index, 2> sizes{bytes_on_disk(task), -task.A.sizes_on_disk(task.kept(), 0, 0).memory};
  world.all_reduce(sizes, ReduceOp::max);  // ranks may have other tiles
  const auto [on_disk, memory] = std::array{sizes[0], -sizes[1]};
  if (on_disk == 0) return;
  const Index bytes = std::min(most, on_disk);
  const DiskRate rate = placed.in_place
                            ? measure_file(world, place_of_array(task.A.name()).file, bytes, memory)
                            : measure_disk(world, place_of_tiles(task.arguments), bytes, memory);
  placed.disk_rate = rate.bytes_per_second;
  placed.iteration.pass_seconds = static_cast<double>(on_disk) / placed.disk_rate;
}

SolveTask with(const SolveTask& task, const Placement& placed) {
  SolveTask placed_task = task;
  placed_task.placed = placed;
  return placed_task;
}

/// The largest value of all ranks, which may have other tiles (collective over world).
Index most_of(Communicator& world, Index value) {
  std::array<Index, 1> most{value};
  world.all_reduce(most, ReduceOp::max);
  return most[0];
}

/// The memory of a rank, in bytes.
struct RankMemory {
  Index limit = 0;   ///< all that it may take
  Index before = 0;  ///< what the rank has that has most
};

/// Returns the bytes that the rank which needs most would take (collective over world).
Index needed(Communicator& world, const RankMemory& memory, const SolveTask& task) {
  return most_of(world, memory.before + taken_by_others(task) + most_memory(plan_of(task), task.A));
}

RankMemory memory_of_ranks(Communicator& world, const SolveArguments& arguments) {
  return {.limit = arguments.memory > 0 ? arguments.memory : available_bytes_per_rank(world),
          .before = most_of(world, resident_bytes())};
}

/// A on disks: in its file or not, and how much of it stays in memory (collective over world). Throws
/// UsageError on all ranks if --memory is too small.
Placement place_on_disk(Communicator& world, const SolveTask& task, const RankMemory& memory) {
  Placement placed = task.placed;
  placed.in_place = stays_in_file(world, task);
  if (placed.in_place)
    placed.in_place = needed(world, memory, with(task, placed)) <= memory.limit;  // tiles take less
  const SolveTask least = with(task, placed);
  const Index taken = needed(world, memory, least);
  if (taken > memory.limit && task.arguments.memory > 0)
    throw UsageError(
        fmt::format("--memory is {}, but a rank takes at least {} with A on a disk: more ranks, or a "
                    "smaller --batch, take less",
                    bytes_text(memory.limit), bytes_text(taken)));
  const Index beside = memory.before + taken_by_others(least) + address_space_of_disk_threads(world);
  placed.memory_of_tiles =
      -most_of(world, -room_for_tiles(plan_of(least), least.A, least.kept(), memory.limit - beside));
  return placed;
}

/// Says how fast the disks are, and how long an iteration takes.
std::string disk_text(const SolveTask& task) {
  const Index on_disk = bytes_on_disk(task);
  const char* const where = task.placed.in_place ? "in its file" : "on disks";
  if (on_disk == 0) return "all of A has room in memory: nothing is read from disks\n";
  if (task.placed.disk_rate == 0)
    return fmt::format("{}: {}; --storage disk measures how fast they are read\n", where,
                       bytes_text(on_disk));
  const int passes = passes_over_matrix(task.iteration());
  const char* often = passes == 1 ? "once" : "twice";
  const double reading = passes * static_cast<double>(on_disk) / task.placed.disk_rate;
  if (task.A.is_compressed())
    return fmt::format(
        "on disks: {}, read {} an iteration; the disks deliver {}/s (measured), so that takes {}\n",
        bytes_text(on_disk), often, bytes_text(static_cast<Index>(task.placed.disk_rate)),
        duration_text(reading));
  const auto seconds = [&](const PlannedIteration& iteration) {
    return iteration_seconds(iteration, task.grid()->shape(), task.machine);
  };
  PlannedIteration computing = task.iteration(), otherwise = task.iteration();
  computing.pass_seconds = 0;
  otherwise.one_pass = !otherwise.one_pass;
  std::string text = fmt::format(
      "{}: {}, read {} an iteration; the disks deliver {}/s (measured), so that takes {}, and "
      "computing {} (by the model): {} decide\n",
      where, bytes_text(on_disk), often, bytes_text(static_cast<Index>(task.placed.disk_rate)),
      duration_text(reading), duration_text(seconds(computing)),
      reading > seconds(computing) ? "disks" : "cores");
  if (row_of(task.arguments.solver).has(Feature::one_pass) && seconds(otherwise) < seconds(task.iteration()))
    text += fmt::format("with --one-pass {} an iteration would take {}\n", otherwise.one_pass ? "on" : "off",
                        duration_text(seconds(otherwise)));
  return text;
}

}  // namespace

PlannedSolve plan_of(const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  PlannedSolve plan =
      plan_solve(task.A, task.kept(), task.iteration(), task.shape, arguments.options.batch, task.grid());
  plan.damped = arguments.is_damped();
  plan.initial_guess = task.X0.has_value() || task.sweep.in_space;
  plan.scaled = is_scaled(task);
  plan.variances = !arguments.variances.empty();
  plan.bounds = (arguments.lower.empty() ? 0 : 1) + (arguments.upper.empty() ? 0 : 1);
  plan.guarded = arguments.options.guard > 0;
  plan.may_factor = task.patience.has_value();
  plan.weighted = arguments.weighs();
  plan.reweighted = arguments.reweighs();
  plan.own_damps = task.sweep || plan.variances;
  if (arguments.sweep.by_factor()) plan.curves = std::ssize(task.sweep.damps);
  if (task.sweep.leaves_rest) plan.rest = std::max(task.B.cols, std::ssize(task.sweep.damps));
  if (arguments.sketches()) plan.sketch_columns = std::min(sketch_group, sketch_rows(task.shape.cols));
  with_scalar_type(task.shape.type, [&]<Scalar T>() {
    if (plan.scaled && task.is_on_disk()) plan.norms_bytes = norms_bytes<T>(task, plan.matrix);
    if (task.sweep.in_space) plan.space_bytes = space_bytes<T>(task);
    plan.sigma_min_bytes = sigma_min_bytes<T>(task);
  });
  return plan;
}

bool has_room_for_factor(Communicator& world, const SolveTask& task) {
  const RankMemory memory = memory_of_ranks(world, task.arguments);
  return needed(world, memory, task) <= memory.limit;
}

Placement find_room(Communicator& world, const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  const bool is_asked = task.is_on_disk();
  if (is_asked && !may_be_on_disk(task))
    throw UsageError(
        "--storage disk is for matrices in files, on --device cpu, by --algorithm stationary-a, without "
        "--verify-matrix, and not with --certify");
  // A restart has A where its run had it, unless that changes no bit.
  const bool may_choose =
      !arguments.stored_as.storage && may_be_on_disk(task) && (task.saved.empty() || task.A.is_compressed());
  if (!is_asked && !may_choose && arguments.memory == 0) return task.placed;
  const RankMemory memory = memory_of_ranks(world, arguments);
  const Index all = is_asked ? 0 : needed(world, memory, task);
  if (!is_asked && all <= memory.limit) return task.placed;
  if (!is_asked && !may_choose) {
    if (arguments.memory == 0) return task.placed;
    throw UsageError(
        fmt::format("--memory is {}, but a rank would take {}; with --storage disk it could take less",
                    bytes_text(memory.limit), bytes_text(all)));
  }
  Placement placed = place_on_disk(world, is_asked ? task : with(task, task.on_disk()), memory);
  if (!is_asked)
    placed.why_disk = fmt::format("A {}: a rank would take {}, and may take {}\n",
                                  placed.in_place ? "is read in its file" : "goes to disks", bytes_text(all),
                                  bytes_text(memory.limit));
  const bool chooses = placed.iteration.one_pass && !arguments.is_given("--one-pass") && task.saved.empty();
  // Rows from disks may make a factor, which then takes as long as these allow.
  const bool may_factor = task.patience && task.shape.rows >= task.shape.cols;
  // Unless A stays in its file, that writes to the disks.
  const bool measures = arguments.dry_run ? is_asked || placed.in_place : chooses || may_factor;
  if (measures) measure_disks(world, with(task, placed), placed);
  if (measures && chooses)
    placed.iteration = with_faster_passes(placed.iteration, placed.grid->shape(), task.machine);
  return placed;
}

DiskUse disk_use(const SolveTask& task, std::pair<Index, double> reads) {
  return {static_cast<double>(bytes_on_disk(task)), sum(*task.grid(), static_cast<double>(reads.first)),
          maximum(*task.grid(), reads.second), task.placed.disk_rate, task.placed.in_place};
}

void tell_plan(Communicator& world, const SolveTask& task) {
  const bool talks = world.rank() == 0;
  if (!task.arguments.certify.empty()) {
    const std::string text = with_scalar_type(task.shape.type, [&]<Scalar T>() {
      return certified_plan_text(world, task, certified_bytes(task, *planned_product<T>(task)));
    });
    if (talks) print(text);
  } else if (talks) {
    print(plan_text(plan_of(task)));
  }
  if (talks && task.is_on_disk()) print(disk_text(task));
}

}  // namespace gridlops::program
