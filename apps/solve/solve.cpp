// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/option_values.hpp"
#include "measure/number_checks.hpp"
#include "measure/report.hpp"
#include "solve/certify.hpp"
#include "solve/checkpointing.hpp"
#include "solve/solve_on_grid.hpp"
#include "solve/solve_progress.hpp"
#include "solve/solve_record.hpp"
#include "solve/task/placement.hpp"
#include "solve/task/solve_task.hpp"

namespace gridlops::program {

namespace {

std::string headline(const SolveTask& task) {
  const std::string sweep = task.sweep ? fmt::format(" with {} dampings", task.sweep.damps.size()) : "";
  const std::string why =
      task.arguments.chooses_solver ? fmt::format("--solver auto: {}\n", task.why_solver) : "";
  const std::string& matrix = task.A.name();
  return fmt::format("{}: {} x {} {}, {} right-hand side{}{}; {} with {} on {} x {} ranks\n{}",
                     task.original ? fmt::format("{} by {}", task.original->name(), matrix) : matrix,
                     task.shape.rows, task.shape.cols, name_of(task.shape.type), task.B.cols,
                     task.B.cols == 1 ? "" : "s", sweep,
                     task.iteration().one_pass ? "one-pass-cgls" : name_of(task.arguments.solver),
                     name_of(task.iteration().algorithm), task.grid()->rows(), task.grid()->cols(), why);
}

/// Advice for columns that are not finite, broke down, or have a factor that does not bring them closer.
std::string advice(const SolveTask& task, const Solved& solved) {
  const Solver solver = task.arguments.solver;
  const SolveReport& report = solved.report;
  const bool is_left =
      has_column(report, StopReason::iteration_limit) || has_column(report, StopReason::breakdown);
  if (is_left && report.solver == name_of(Solver::direct) && task.is_on_disk() &&
      task.shape.rows < task.shape.cols)
    return "; of columns on disks a factor is that of A A^H, which squares the condition number and loses "
           "singular "
           "values below 1e-7 |A|: damp, take --solver lsqr, or more ranks, whose memory has room for A";
  const bool breaks_down_otherwise = row_of(solver).problem != ProblemKind::least_squares;
  const bool is_non_finite = has_column(report, StopReason::non_finite);
  if (!solved.non_finite_inputs.empty()) return solved.non_finite_inputs;
  if (!is_non_finite && (breaks_down_otherwise || !has_column(report, StopReason::breakdown))) return "";
  return fmt::format(
      "; {}numbers left the range of their type: scale A and B so that their norms are about 1",
      is_non_finite ? "no input holds NaN or infinity, so " : "");
}

void warn_of_rounding(const SolveTask& task) {
  const std::string difference = rounding_difference(
      task.saved,
      facts_of_run(*task.grid(), task.iteration().algorithm, task.arguments.product, task.choices));
  if (!difference.empty())
    warn(fmt::format("results will agree with those of one long run to rounding only: {}", difference));
}

void warn_of_history(const SolveTask& task) {
  const std::string& history = task.arguments.history;
  if (history.empty() || task.sweep.in_space || continues_history(task)) return;
  warn(
      fmt::format("{} will not have all iterations up to {}, which were made before this run goes on: a run "
                  "before it had no --history, so that its state has none",
                  history, saved_fact(task.saved, "iteration")));
}

std::vector<Index> columns_without_data(const std::vector<WeightRange>& weights) {
  std::vector<Index> columns;
  for (std::size_t j = 0; j < weights.size(); ++j)
    if (weights[j].largest == 0) columns.push_back(static_cast<Index>(j));
  return columns;
}

/// Throws, on all ranks, if an output cannot be written, or is an input (collective over world).
void check_files(Communicator& world, const SolveArguments& arguments) {
  const CheckpointOptions& checkpoint = arguments.options.checkpoint;
  std::vector<NamedFile> outputs;
  if (!arguments.dry_run)
    outputs = {{"--output", arguments.output},
               {"--variances", arguments.variances},
               {"--history", arguments.history, NamedFile::text},
               {"--curve", arguments.sweep.curve, NamedFile::text},
               {"--report", arguments.product.report, NamedFile::text}};
  check_outputs(world,
                {{"--matrix", arguments.product.matrix},
                 {"--certify", arguments.certify},
                 {"--rhs", arguments.rhs},
                 {"--initial", arguments.initial},
                 {"--lower", bound_in(arguments.lower) ? "" : arguments.lower},
                 {"--upper", bound_in(arguments.upper) ? "" : arguments.upper},
                 {"--weights", arguments.weights},
                 {"--damps", damps_file(arguments.sweep)},
                 {"--tolerances", arguments.tolerances},
                 {"--machine", arguments.product.machine},
                 manifest_in("--restart", checkpoint.restart),
                 manifest_in("--checkpoint", checkpoint.directory),
                 manifest_in("--space", arguments.space)},
                outputs);
  if (!arguments.dry_run) check_checkpoint_directory(world, checkpoint);
}

/// Writes what is asked for besides X, and says what was not solved (collective over world). Returns the exit
/// status.
ExitStatus tell_results(Communicator& world, const SolveTask& task, const Solved& solved,
                        const Measurements& measured) {
  const SolveArguments& arguments = task.arguments;
  const bool talks = world.rank() == 0;
  const SolveReport& report = solved.report;
  write_history(world, arguments.history, report);
  if (task.sweep.chooses_each) {
    tell_curves(world, arguments, solved.sweep.value_or(SweepOfEach()));
  } else if (task.sweep) {
    tell_curve(world, arguments, solved.curve.value_or(DampingCurve()));
  }
  write_report(world, arguments.product.report, facts_of(task, solved), measured, &report);
  if (talks) warn_of_alarms(report);
  if (talks) warn_of_no_data("column", columns_without_data(solved.weights), "X");
  const bool lacks_choice = (solved.curve && solved.curve->lacks_choice()) ||
                            (solved.sweep && !solved.sweep->without_choice().empty());
  if (all_solved(report)) return lacks_choice ? ExitStatus::check_failed : ExitStatus::done;
  if (talks) {
    const std::string refused = solved.compressed ? refusal_text(task, *solved.compressed) : "";
    warn(fmt::format("not every column was solved: {}; {} is written all the same{}{}", verdict_text(report),
                     arguments.output, advice(task, solved), refused));
  }
  return ExitStatus::not_converged;
}

}  // namespace

ExitStatus solve(Communicator& world, const SolveArguments& arguments) {
  const bool talks = world.rank() == 0;
  catch_signals(!arguments.options.checkpoint.directory.empty(), talks);
  Stopwatch clock;
  Measurements measured;
  const Ranks ranks = make_ranks(world, arguments.product.device, arguments.product.transport);
  measured.setup_seconds = clock.lap();
  check_files(world, arguments);
  const SolveTask task = make_task(world, arguments, ranks);
  const ProcessGrid& grid = *task.grid();
  measured.read_seconds = clock.lap();
  if (talks && !task.saved.empty()) {
    warn_of_rounding(task);
    warn_of_history(task);
  }

  if (talks && !(arguments.quiet && !arguments.dry_run))
    print(headline(task) + task.promotions + task.placed.why_disk);
  if (arguments.dry_run) {
    tell_plan(world, task);
    return ExitStatus::done;
  }
  Solved solved;
  run_on_grid(world, grid, [&] { solved = solve_on_grid(task, talks && !arguments.quiet, measured); });
  if (!grid.is_member())
    measured = {.predicted_bytes_received = 0, .counted_bytes_received = 0, .planned_bytes = 0};
  return tell_results(world, task, solved, measured);
}

}  // namespace gridlops::program
