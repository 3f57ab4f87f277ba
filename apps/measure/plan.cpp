// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/option_rules.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/text_file.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "machine/machine_file.hpp"
#include "matrix/matrix_file.hpp"
#include "matrix/memory_plan.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

using Json = nlohmann::ordered_json;

struct PlanArguments {
  ProductShape shape;
  bool has_size = false;
  std::vector<Index> ranks{1};
  std::vector<GridShape> grids;  ///< instead of numbers of ranks
  IterationRequest asked;
  DependentOptions by_solver{"--solver"};
  Index iterations = 100;
  Index memory_per_rank = std::numeric_limits<Index>::max();
  bool one_pass_is_given = false;
  Index disk_rate = 0;  ///< what a rank's disk delivers, in bytes per second; 0: it has none
  std::string transport = "mpi";
  std::string matrix;  ///< the directory of a compressed matrix, instead of a shape
  MatrixFile A{MatrixHeader()};
  std::string machine, json;
};

/// The plan of a solve on a number of ranks.
struct Plan {
  GridShape grid;
  PlannedIteration iteration;
  Index batch = 0;         ///< columns at once
  Index memory = 0;        ///< of the rank that needs most
  Index disk = 0;          ///< on the disk of that rank
  double seconds = 0;      ///< of an iteration with a batch; NaN with a compressed matrix
  double all_seconds = 0;  ///< of all iterations of all batches; of direct with its factor, and one iteration
};

/// memory: of a matrix on disks, what is to be in memory.
KeptMatrix kept_matrix(const PlanArguments& arguments, const Plan& plan, Index memory = 0) {
  return {.type = arguments.shape.type,
          .grid = plan.grid,
          .columns = plan.iteration.shape.nrhs,
          .place = plan.iteration.place,
          .memory = memory};
}

PlannedSolve planned_solve(const PlanArguments& arguments, const Plan& plan, Index memory = 0) {
  // This grid has no ranks here, so it takes no memory.
  const auto grid = std::make_shared<const ProcessGrid>(plan.grid, make_host_backend());
  return plan_solve(arguments.A, kept_matrix(arguments, plan, memory), plan.iteration, arguments.shape,
                    plan.batch, grid);
}

/// Puts A of a plan on disks: all ranks keep as much of it as the rest of the fullest one's memory leaves. An
/// iteration takes as long as the disk or as the cores need, whichever is longer.
void put_on_disk(const PlanArguments& arguments, const MachineModel& machine, Plan& plan) {
  const MatrixFile& A = arguments.A;
  const Index room = room_for_tiles(planned_solve(arguments, plan), A, kept_matrix(arguments, plan),
                                    arguments.memory_per_rank);
  plan.memory = most_memory(planned_solve(arguments, plan, room), A);
  const KeptMatrix kept = kept_matrix(arguments, plan, room);
  plan.disk = largest_on(A.full_ranks(plan.grid),
                         [&](int row, int col) { return A.sizes_on_disk(kept, row, col).disk; });
  plan.iteration.pass_seconds = static_cast<double>(plan.disk) / static_cast<double>(arguments.disk_rate);
  if (!arguments.one_pass_is_given) plan.iteration = with_faster_passes(plan.iteration, plan.grid, machine);
  plan.seconds = A.modelled(iteration_seconds(plan.iteration, plan.grid, machine));
}

/// The plan for a request on one grid.
Plan plan_by(const PlanArguments& arguments, const IterationRequest& asked, const MachineModel& machine,
             GridShape grid) {
  const ProductShape& shape = arguments.shape;
  Plan plan;
  plan.grid = grid;
  plan.batch = asked.batch;
  plan.iteration = plan_iteration(asked, shape, grid, machine);
  plan.seconds = arguments.A.modelled(iteration_seconds(plan.iteration, grid, machine));
  if (plan.iteration.place == MatrixPlace::disk) {
    put_on_disk(arguments, machine, plan);
  } else {
    plan.memory = most_memory(planned_solve(arguments, plan), arguments.A);
  }
  if (gridlops::row_of(asked.solver).has(Feature::factor)) {
    plan.all_seconds = arguments.A.modelled(direct_seconds(plan.iteration, shape.nrhs, false, grid, machine));
    return plan;
  }
  plan.all_seconds =
      plan.seconds *
      static_cast<double>(arguments.iterations *
                          batch_count(columns_of(plan.iteration.algorithm, shape.nrhs, grid), asked.batch));
  return plan;
}

/// The plan on a grid. With `auto` it uses the algorithm that a run would choose; if that does not fit, the
/// fastest that does.
Plan plan_on(const PlanArguments& arguments, const MachineModel& machine, GridShape grid, Index batch) {
  IterationRequest asked = arguments.asked;
  asked.batch = batch;
  Plan plan = plan_by(arguments, asked, machine, grid);
  const bool is_open = asked.algorithm == Algorithm::automatic && !plan.iteration.one_pass &&
                       !gridlops::row_of(asked.solver).has(Feature::shared_space);
  if (!is_open || plan.memory <= arguments.memory_per_rank) return plan;
  asked.one_pass = false;
  for (const auto& [name, other] : algorithms()) {
    if (other == Algorithm::automatic) continue;
    asked.algorithm = other;
    const Plan instead = plan_by(arguments, asked, machine, grid);
    if (instead.memory > arguments.memory_per_rank) continue;
    if (plan.memory > arguments.memory_per_rank || instead.all_seconds < plan.all_seconds) plan = instead;
  }
  return plan;
}

/// The fastest plan that fits on this grid, or on any grid of this many ranks, with A where it is asked for
/// and as many columns at once as fit; nothing if no column fits.
std::optional<Plan> plan_in_place(const PlanArguments& arguments, const MachineModel& machine, int ranks,
                                  std::optional<GridShape> asked) {
  for (Index batch = arguments.shape.nrhs;; batch = (batch + 1) / 2) {
    const auto seconds = [&](GridShape candidate) {
      const Plan plan = plan_on(arguments, machine, candidate, batch);
      return plan.memory <= arguments.memory_per_rank
                 ? arguments.A.cost_on(candidate, arguments.shape, [&] { return plan.all_seconds; })
                 : std::numeric_limits<double>::infinity();
    };
    const Plan plan = plan_on(arguments, machine, asked ? *asked : choose_grid(ranks, seconds), batch);
    if (plan.memory <= arguments.memory_per_rank) return plan;
    if (batch <= 1) return std::nullopt;
  }
}

/// Plans so, with A on disks where there are some and that is faster than fewer columns at a time; of a
/// compressed A, for which no model says so, if no column fits.
std::optional<Plan> plan_for(const PlanArguments& arguments, const MachineModel& machine, int ranks,
                             std::optional<GridShape> grid) {
  const std::optional<Plan> plan = plan_in_place(arguments, machine, ranks, grid);
  const bool may_be_on_disk = arguments.disk_rate > 0 && arguments.asked.on_host &&
                              may_be(arguments.asked.algorithm, Algorithm::stationary_a);
  if (!may_be_on_disk || (plan && (arguments.A.is_compressed() || plan->batch == arguments.shape.nrhs)))
    return plan;
  PlanArguments on_disk = arguments;
  on_disk.asked.place = MatrixPlace::disk;
  if (!arguments.one_pass_is_given && !arguments.A.is_compressed()) on_disk.asked.one_pass.reset();
  const std::optional<Plan> streamed = plan_in_place(on_disk, machine, ranks, grid);
  return streamed && (!plan || streamed->all_seconds < plan->all_seconds) ? streamed : plan;
}

struct PlannedTraffic {
  Index most_bytes = 0, messages = 0;
};

/// The most bytes that any rank receives in the products of an iteration with all columns, and the operations
/// that it joins.
PlannedTraffic traffic_of(const Plan& plan) {
  PlannedTraffic traffic;
  for (int row = 0; row < plan.grid.rows; ++row) {
    for (int col = 0; col < plan.grid.cols; ++col) {
      const RankCost cost = iteration_cost(plan.iteration, plan.grid, row, col);
      traffic.most_bytes = std::max(traffic.most_bytes, cost.bytes_received);
      traffic.messages = std::max(traffic.messages, cost.messages);
    }
  }
  return traffic;
}

bool is_of_compressed(const Plan& plan) { return std::isnan(plan.seconds); }
std::string_view storage_of(const Plan& plan) {
  const bool in_tiles = is_of_compressed(plan) && plan.iteration.place == MatrixPlace::memory;
  return in_tiles ? "tiles" : name_of_storage(plan.iteration);
}

Json json_of(const Plan& plan, const PlannedTraffic& traffic) {
  return {{"ranks", plan.grid.size()},
          {"grid", {plan.grid.rows, plan.grid.cols}},
          {"algorithm", name_of(plan.iteration.algorithm)},
          {"storage", storage_of(plan)},
          {"one_pass", plan.iteration.one_pass},
          {"batch", plan.batch},
          {"memory_bytes", plan.memory},
          {"disk_bytes", plan.disk},
          {"bytes_received", traffic.most_bytes},
          {"messages", traffic.messages},
          {"seconds_per_iteration", plan.seconds},
          {"seconds", plan.all_seconds}};
}

std::string title() {
  return fmt::format("{:>6} {:>9} {:<12} {:<7} {:>6} {:>10} {:>10} {:>8} {:>12} {:>12} {:>10}\n", "ranks",
                     "grid", "algorithm", "A in", "batch", "memory", "received", "messages", "ms/iteration",
                     "seconds", "efficiency");
}

std::string row_of(const Plan& plan, const PlannedTraffic& traffic, double efficiency) {
  const auto known = [&](double number, int digits) {
    return is_of_compressed(plan) ? std::string("-") : fmt::format("{:.{}f}", number, digits);
  };
  return fmt::format("{:>6} {:>9} {:<12} {:<7} {:>6} {:>10} {:>10} {:>8} {:>12} {:>12} {:>10}\n",
                     plan.grid.size(), fmt::format("{}x{}", plan.grid.rows, plan.grid.cols),
                     name_of(plan.iteration.algorithm), storage_of(plan), plan.batch, bytes_text(plan.memory),
                     bytes_text(traffic.most_bytes), traffic.messages, known(1e3 * plan.seconds, 3),
                     known(plan.all_seconds, 3), known(efficiency, 2));
}

/// The table, and the same data as JSON.
std::pair<std::string, Json> plans(const PlanArguments& arguments, const Machine& machine) {
  const ProductShape& shape = arguments.shape;
  const MachineModel model = machine.model(arguments.transport, arguments.transport == "shared");
  std::string text = fmt::format(
      "{} x {} {}, {} right-hand sides; {} iterations of {} by {}; machine: {}\nof the rank that has most: "
      "memory, and what it receives in products, per iteration of a batch\n{}",
      shape.rows, shape.cols, name_of(shape.type), shape.nrhs, arguments.iterations,
      arguments.asked.one_pass.value_or(false) ? "one-pass-cgls" : name_of(arguments.asked.solver),
      arguments.transport, machine.source, title());
  Json json{{"schema", "gridlops.plan/1"},
            {"machine", machine.source},
            {"transport", arguments.transport},
            {"rows", shape.rows},
            {"cols", shape.cols},
            {"nrhs", shape.nrhs},
            {"dtype", name_of(shape.type)},
            {"solver", name_of(arguments.asked.solver)},
            {"iterations", arguments.iterations},
            {"results", Json::array()}};
  double first = 0;  // seconds of one rank, if work scaled back perfectly
  std::vector<std::pair<int, std::optional<GridShape>>> places;
  for (const GridShape grid : arguments.grids) places.emplace_back(grid.size(), grid);
  if (arguments.grids.empty())
    for (const Index ranks : arguments.ranks) places.emplace_back(static_cast<int>(ranks), std::nullopt);
  for (const auto& [ranks, grid] : places) {
    const std::optional<Plan> plan = plan_for(arguments, model, ranks, grid);
    if (!plan) {
      text += fmt::format("{:>6} {:>9} no column fits into {} for each rank\n", ranks, "-",
                          bytes_text(arguments.memory_per_rank));
      json["results"].push_back({{"ranks", ranks}, {"fits", false}});
      continue;
    }
    const PlannedTraffic traffic = traffic_of(*plan);
    const double rank_seconds = plan->all_seconds * static_cast<double>(ranks);
    if (first == 0) first = rank_seconds;
    text += row_of(*plan, traffic, rank_seconds > 0 ? first / rank_seconds : 1);
    json["results"].push_back(json_of(*plan, traffic));
  }
  return {text, json};
}

/// Takes the shape of a compressed matrix, and what it allows (collective over world).
void take_shape_of_compressed(Communicator& world, PlanArguments& arguments) {
  MatrixFile& A = arguments.A = MatrixFile(world, arguments.matrix);
  if (!A.is_compressed())
    throw UsageError(
        fmt::format("--matrix {} is no directory that gridlops compress made; other matrices need "
                    "no more than --matrix-size {}x{}",
                    arguments.matrix, A.rows(), A.cols()));
  IterationRequest& asked = arguments.asked;
  A.require_fits(asked.algorithm, A.header().type);
  A.require_elements(asked.one_pass.value_or(false) ? "--one-pass" : nullptr);
  A.read_tables(world);
  arguments.shape = {A.rows(), A.cols(), arguments.shape.nrhs, A.header().type};
  A.narrow(asked);
}

ExitStatus plan(Communicator& world, PlanArguments arguments) {
  check_rules(arguments.by_solver.rules(name_of(arguments.asked.solver)));
  if (arguments.matrix.empty() && !arguments.has_size)
    throw UsageError("plan needs --matrix-size, or --matrix with a compressed matrix");
  if (!arguments.matrix.empty()) {
    take_shape_of_compressed(world, arguments);
  } else {
    arguments.A = MatrixFile({.rows = arguments.shape.rows, .cols = arguments.shape.cols});
  }
  check_rules(rules_of(arguments.asked));
  const ProductShape& shape = arguments.shape;
  if (const std::string refusal = shape_refusal(arguments.asked.solver, shape.rows, shape.cols);
      !refusal.empty())
    throw UsageError(arguments.matrix.empty() ? fmt::format("--matrix-size is {}", refusal)
                                              : fmt::format("{} is {}", arguments.matrix, refusal));
  check_outputs(world, {{"--machine", arguments.machine}}, {{"--json", arguments.json, NamedFile::text}});
  const Machine machine = read_machine(world, arguments.machine);
  attempt(world, [&] {
    if (world.rank() != 0) return;
    auto [text, json] = plans(arguments, machine);
    print(text);
    if (arguments.json.empty()) return;
    write_text_file(arguments.json,
                    [file = json_text(json, 1) + "\n"]() mutable { return std::exchange(file, {}); });
  });
  return ExitStatus::done;
}

/// The more ranks, the longer a plan takes to make: a second for 10⁵ of them.
void check_ranks(Index ranks) {
  constexpr Index most = 1 << 17;
  if (ranks < 1 || ranks > most)
    throw UsageError(fmt::format("there are no plans for {} ranks, but for 1 to {}", ranks, most));
}

/// "auto" depends on the machines that a job runs on.
Names<std::string> transports_of_plans() {
  Names<std::string> names = transports();
  names.erase(names.begin());
  return names;
}

}  // namespace

Action define_plan(Options& options) {
  const auto arguments = std::make_shared<PlanArguments>();
  PlanArguments& plan = *arguments;
  options.parsed(
      "--matrix-size",
      [&plan](const std::string& text) {
        plan.has_size = true;
        const std::size_t cross = text.find_first_of("xX");
        plan.shape.rows = whole_number(text.substr(0, cross), 0);
        plan.shape.cols = whole_number(cross == std::string::npos ? "" : text.substr(cross + 1), 0);
      },
      "MxN", "Rows and columns of A");
  options.text("--matrix", plan.matrix, "DIR", "Instead, an A that gridlops compress wrote");
  options.whole("--rhs", plan.shape.nrhs, "R", 0, "Right-hand sides")->required();
  options.choice("--dtype", plan.shape.type, scalar_types(), "Type of the elements [f64]");
  for (const char* of_array : {"--matrix-size", "--dtype"}) options.exclude("--matrix", of_array);
  options.parsed(
      "--ranks",
      [&plan](const std::string& text) {
        plan.ranks = numbers(text);
        for (const Index ranks : plan.ranks) check_ranks(ranks);
      },
      "N[,...]", "Numbers of ranks: 4,6; 1..1024 doubles; 8..64+8 adds [1]");
  options.parsed(
      "--grid",
      [&plan](const std::string& text) {
        plan.grids.clear();
        for (const std::string& item : items(text)) {
          plan.grids.push_back(parse_grid_shape(item));
          check_ranks(plan.grids.back().size());
        }
      },
      "PxQ[,...]", "Plans for these grids [the fastest by the model]");
  options.choice("--solver", plan.asked.solver, solvers(), "The method [cgls]");
  options.choice("--one-pass", plan.asked.one_pass, switches(),
                 "reads A once in an iteration, in stationary-a [off]");
  options.whole("--iterations", plan.iterations, "K", 0, "Iterations of every column [100]");
  options.choice("--algorithm", plan.asked.algorithm, algorithms(), "How products are formed [auto]");
  options.choice("--transport", plan.transport, transports_of_plans(), "What carries the data [mpi]");
  options.parsed(
      "--memory-per-rank", [&plan](const std::string& text) { plan.memory_per_rank = size_number(text, 1); },
      "BYTES", "The most memory that a rank may take; 4G [any]");
  options.parsed(
      "--disk-rate", [&plan](const std::string& text) { plan.disk_rate = size_number(text, 1); }, "BYTES",
      "What the disk of a rank delivers in a second, such as 500M: A goes there where memory is short");
  options.text("--machine", plan.machine, "FILE", about_machine);
  options.text("--json", plan.json, "FILE", "Writes the plans as JSON");
  plan.by_solver.follow_table(options, solver_options());
  options.examples(
      {"gridlops plan --matrix-size 100000x20000 --rhs 64 --ranks 1..1024",
       "gridlops plan --matrix-size 100000x20000 --rhs 64 --grid 4x4,2x8 --memory-per-rank 2G",
       "gridlops plan --matrix-size 1000000x200000 --rhs 64 --ranks 16 --memory-per-rank 8G --disk-rate 1G",
       "gridlops plan --matrix compressed --rhs 8 --ranks 1..16"});
  return [arguments, options](Communicator& world) {
    arguments->one_pass_is_given = options.given().count("--one-pass") > 0;
    return program::plan(world, *arguments);
  };
}

}  // namespace gridlops::program
