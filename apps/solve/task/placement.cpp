// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "command_line/console.hpp"
#include "gridlops/base/error.hpp"
#include "machine/limits.hpp"
#include "machine/memory_limit.hpp"

namespace gridlops::program {

namespace {

/// Whether the solve needs nothing of A but products by stationary-a in host memory, and norms of columns.
bool may_be_on_disk(const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  return arguments.certify.empty() && arguments.product.device == "cpu" && !arguments.verify_matrix &&
         may_be(arguments.product.algorithm, Algorithm::stationary_a);
}

/// What others take after the plan is made, about: libraries and texts, and MPI, which has two copies of what
/// it sums over ranks.
Index taken_by_others(const SolveTask& task) {
  constexpr Index texts = Index{6} << 20;
  const ProcessGrid& grid = *task.grid;
  const Index columns = task.kept().columns;
  const Index models = grid.rows() > 1 ? 2 * task.shape.cols / grid.cols() : 0;
  const Index data = grid.cols() > 1 ? task.shape.rows / grid.rows() : 0;
  return texts + task.A.bytes_of_tables(grid.shape()) +
         2 * std::max(models, data) * columns * size_of(task.shape.type);
}

Index most_memory(const SolveTask& task, const PlannedSolve& plan) {
  return largest_on(task.A.full_ranks(task.grid->shape()),
                    [&](int row, int col) { return memory_of_rank(plan, row, col); });
}

/// What a rank may keep of A, which has the least now, in this memory besides.
Index room_for_tiles(const SolveTask& task, const PlannedSolve& plan, Index memory) {
  const KeptMatrix kept = task.kept();
  const Index beside = largest_on(task.A.full_ranks(kept.grid), [&](int row, int col) {
    return memory_of_rank(plan, row, col) - task.A.sizes_on_disk(kept, row, col).memory;
  });
  return std::max<Index>(memory - beside, 0);
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
  return in_place_run(world, A.name(), A.header(), task.grid->shape()) >= long_enough;
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
void measure_disks(Communicator& world, SolveTask& task) {
  const Index most = world.size() * (Index{128} << 20);
  std::array<Index, 2> sizes{bytes_on_disk(task), -task.A.sizes_on_disk(task.kept(), 0, 0).memory};
  world.all_reduce(sizes, ReduceOp::max);  // ranks may have other tiles
  const auto [on_disk, memory] = std::array{sizes[0], -sizes[1]};
  if (on_disk == 0) return;
  const Index bytes = std::min(most, on_disk);
  const DiskRate rate = task.in_place ? measure_file(world, place_of_array(task.A.name()).file, bytes, memory)
                                      : measure_disk(world, place_of_tiles(task.arguments), bytes, memory);
  task.disk_rate = rate.bytes_per_second;
  task.iteration.pass_seconds = static_cast<double>(on_disk) / task.disk_rate;
}

}  // namespace

void find_room(Communicator& world, SolveTask& task,
               const std::function<PlannedSolve(const SolveTask&)>& plan_of) {
  const SolveArguments& arguments = task.arguments;
  const bool is_asked = task.is_on_disk();
  if (is_asked && !may_be_on_disk(task))
    throw UsageError(
        "--storage disk is for matrices in files, on --device cpu, by --algorithm stationary-a, without "
        "--verify-matrix, and not with --certify");
  // A restart has A where its run had it, unless that changes no bit.
  const bool may_choose =
      !arguments.stored_as.storage && may_be_on_disk(task) && (task.saved.empty() || task.A.is_compressed());
  if (!is_asked && !may_choose && arguments.memory == 0) return;
  std::array<Index, 1> before{resident_bytes()};
  world.all_reduce(before, ReduceOp::max);
  const Index limit = arguments.memory > 0 ? arguments.memory : available_bytes_per_rank(world);
  const auto most_of = [&](Index value) {  // ranks may have other tiles
    std::array<Index, 1> most{value};
    world.all_reduce(most, ReduceOp::max);
    return most[0];
  };
  const auto needed = [&] {
    return most_of(before[0] + taken_by_others(task) + most_memory(task, plan_of(task)));
  };
  const Index all = is_asked ? 0 : needed();
  if (!is_asked) {
    if (all <= limit) return;
    if (!may_choose) {
      if (arguments.memory == 0) return;
      throw UsageError(
          fmt::format("--memory is {}, but a rank would take {}; with --storage disk it could take less",
                      bytes_text(limit), bytes_text(all)));
    }
    task.put_on_disk();
  }
  task.memory_of_tiles = 0;
  task.in_place = stays_in_file(world, task);
  if (task.in_place) task.in_place = needed() <= limit;  // tiles take less
  if (!is_asked)
    task.why_disk = fmt::format("A {}: a rank would take {}, and may take {}\n",
                                task.in_place ? "is read in its file" : "goes to disks", bytes_text(all),
                                bytes_text(limit));
  const Index least = needed();
  if (least > limit && arguments.memory > 0)
    throw UsageError(
        fmt::format("--memory is {}, but a rank takes at least {} with A on a disk: more ranks, or a "
                    "smaller --batch, take less",
                    bytes_text(limit), bytes_text(least)));
  const Index beside = before[0] + taken_by_others(task) + address_space_of_disk_threads(world);
  task.memory_of_tiles = -most_of(-room_for_tiles(task, plan_of(task), limit - beside));
  const bool chooses = task.iteration.one_pass && !arguments.is_given("--one-pass") && task.saved.empty();
  // Unless A stays in its file, that writes to the disks.
  const bool measures = arguments.dry_run ? is_asked || task.in_place : chooses;
  if (measures) measure_disks(world, task);
  if (measures && chooses)
    task.iteration = with_faster_passes(task.iteration, task.grid->shape(), task.machine);
}

DiskUse disk_use(const SolveTask& task, std::pair<Index, double> reads) {
  return {static_cast<double>(bytes_on_disk(task)), sum(*task.grid, static_cast<double>(reads.first)),
          maximum(*task.grid, reads.second), task.disk_rate, task.in_place};
}

std::string disk_text(const SolveTask& task) {
  const Index on_disk = bytes_on_disk(task);
  const char* const where = task.in_place ? "in its file" : "on disks";
  if (on_disk == 0) return "all of A has room in memory: nothing is read from disks\n";
  if (task.disk_rate == 0)
    return fmt::format("{}: {}; --storage disk measures how fast they are read\n", where,
                       bytes_text(on_disk));
  const int passes = passes_over_matrix(task.iteration);
  const char* often = passes == 1 ? "once" : "twice";
  const double reading = passes * static_cast<double>(on_disk) / task.disk_rate;
  if (task.A.is_compressed())
    return fmt::format(
        "on disks: {}, read {} an iteration; the disks deliver {}/s (measured), so that takes {}\n",
        bytes_text(on_disk), often, bytes_text(static_cast<Index>(task.disk_rate)), duration_text(reading));
  const auto seconds = [&](const PlannedIteration& iteration) {
    return iteration_seconds(iteration, task.grid->shape(), task.machine);
  };
  PlannedIteration computing = task.iteration, otherwise = task.iteration;
  computing.pass_seconds = 0;
  otherwise.one_pass = !otherwise.one_pass;
  std::string text = fmt::format(
      "{}: {}, read {} an iteration; the disks deliver {}/s (measured), so that takes {}, and "
      "computing {} (by the model): {} decide\n",
      where, bytes_text(on_disk), often, bytes_text(static_cast<Index>(task.disk_rate)),
      duration_text(reading), duration_text(seconds(computing)),
      reading > seconds(computing) ? "disks" : "cores");
  if (row_of(task.arguments.solver).has(Feature::one_pass) && seconds(otherwise) < seconds(task.iteration))
    text += fmt::format("with --one-pass {} an iteration would take {}\n", otherwise.one_pass ? "on" : "off",
                        duration_text(seconds(otherwise)));
  return text;
}

}  // namespace gridlops::program
