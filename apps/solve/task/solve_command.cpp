// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command_line/option_values.hpp"
#include "gridlops/base/error.hpp"
#include "solve/sweep.hpp"
#include "solve/task/solve_arguments.hpp"
#include "subcommands.hpp"

// The options of `gridlops solve`, and their syntax.

namespace gridlops::program {

namespace {

std::string about_solvers() {
  std::string text;
  for (const Solver solver : named_solvers())
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name_of(solver), row_of(solver).about);
  return text + "; auto: block-cgls or cgls, as docs/solvers.md says [cgls]";
}

/// "20" is a number of iterations; "30s", "10m" and "2h" are times.
void parse_interval(const std::string& text, CheckpointOptions& checkpoint) {
  const std::vector<std::pair<char, double>> units{{'s', 1}, {'m', 60}, {'h', 3600}};
  checkpoint.every_iterations = 0;
  checkpoint.every_seconds = 0;
  for (const auto& [unit, seconds] : units) {
    if (text.empty() || text.back() != unit) continue;
    checkpoint.every_seconds = seconds * number(text.substr(0, text.size() - 1), 0);
    return;
  }
  try {
    checkpoint.every_iterations = whole_number(text, 1);
  } catch (const UsageError& error) {
    throw UsageError(std::string(error.what()) + "; or a time: 30s, 10m, 2h");
  }
}

/// The subcommand solve: its arguments, and the solvers of each option.
class SolveCommand {
 public:
  void define(Options& options) {
    arguments_.options.checkpoint.every_seconds = 600;
    define_problem(options);
    define_stop(options);
    define_method(options);
    define_results(options);
    define_safety(options);
    define_products(options, arguments_.product);
    options.choice("--storage", arguments_.stored_as, storages_and_disk(),
                   "block, stationary-a: how A is stored; packed: in the order in which products read it; "
                   "disk: the same, "
                   "and on disks, or in its file, what has no room in memory [auto]");
    options.parsed(
        "--memory", [this](const std::string& text) { arguments_.memory = size_number(text, 1); }, "BYTES",
        "The most memory of a rank, such as 4G [what the machine and its control groups leave]");
    options.text("--scratch", arguments_.scratch, "DIR",
                 "Where --storage disk puts A, which is gone when the run ends [A stays in its file, if it "
                 "has long rows or chunks; otherwise $TMPDIR, or /var/tmp]");
    options.text("--tiles", arguments_.tiles, "DIR",
                 "Where --storage disk puts A instead, to stay for runs with the same A and grid");
    options.flag("--dry-run", arguments_.dry_run, "Says what memory and traffic there would be, and stops");
    relate_options(options);
    by_solver_.follow_table(options, options_of_solve());
    options.examples(
        {"mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --damp 0.1",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --solver fista "
         "--lambda-relative 0.1 --tolerance 1e-3",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --solver auto --damp "
         "0.1 --error 1e-2",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --nonnegative --damp 0.1",
         "mpirun -n 4 gridlops solve --matrix compressed --certify waves/A.npy --rhs waves/B.npy "
         "--output X_waves.npy --damp 0.1",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --damp 0.1 --holes nan",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs b.npy --output X.npy --damps "
         "1e-3:1e1:30 --curve curve.csv"});
  }

  /// given: the names of the options that the user gave (collective over world).
  ExitStatus run(Communicator& world, std::set<std::string> given) {
    SolveArguments arguments = arguments_;
    arguments.given = std::move(given);
    if (arguments.sweep.by_factor() && (!arguments.is_given("--solver") || arguments.chooses_solver)) {
      arguments.solver = Solver::direct;
      arguments.chooses_solver = false;
    }
    if (arguments.has_bounds() && (!arguments.is_given("--solver") || arguments.chooses_solver)) {
      arguments.solver = Solver::bounded;
      arguments.chooses_solver = false;
    }
    check_rules(rules_of_weights(arguments));
    check_rules(by_solver_.rules(name_of(arguments.solver)));
    check_rules(rules_of(arguments));
    return solve(world, arguments);
  }

 private:
  void define_problem(Options& options) {
    options.text("--matrix", arguments_.product.matrix, "A.npy", matrix_help)->required();
    options.text("--rhs", arguments_.rhs, "B.npy", "B, whose columns are the right-hand sides")->required();
    options.text("--output", arguments_.output, "X.npy", "Gets the solutions X, one column for each of B")
        ->required();
    options.group("Problem");
    options.text("--certify", arguments_.certify, "A.npy",
                 "The matrix that a compressed --matrix was made of: solves for that one, with few products; "
                 "columns for which cgls with it would cost less are not solved");
    options.parsed(
        "--solver",
        [this](const std::string& text) {
          arguments_.chooses_solver = text == automatic;
          arguments_.solver = arguments_.chooses_solver ? Solver::cgls : value_of(text, solvers());
        },
        joined(solvers(), "|") + "|" + automatic, about_solvers().c_str());
    define_rows(options, "Problem");
    options.choice("--holes", arguments_.holes, words({"none", "nan"}),
                   "nan: NaN in B are numbers that are missing, with the weight 0 [none]");
    options.choice(
        "--misfit", arguments_.misfit,
        names_of({Misfit::l2, Misfit::huber, Misfit::l1, Misfit::cauchy, Misfit::tukey}),
        "robust against wild numbers in B: weights follow X, so that large residuals count less [l2]");
    options.parsed(
        "--misfit-scale",
        [this](const std::string& text) {
          arguments_.misfit_scale = text == "mad" ? std::nullopt : std::optional(number(text, 0));
        },
        "S|mad",
        "what a usual residual is; mad: 1.4826 times the median of |w o (B - A X)| of each column [mad]");
    options.text("--initial", arguments_.initial, "X0.npy", "Where to start [zero]");
    options.text("--space", arguments_.space, "DIR",
                 "Starts from the best X in the space that --checkpoint kept there for this A; B may be "
                 "other data");
    define_sweep(options, arguments_.sweep);
  }

  void define_sweep(Options& options, SweepArguments& sweep) {
    options.group("Sweep of the damping");
    options.parsed(
        "--damps",
        [&sweep](const std::string& text) {
          damping_range(text);  // throws if it cannot be one
          sweep.damps = text;
        },
        "FILE|D1:D2:N",
        "solves with each of these dampings: a vector in a file, or N from D1 to D2 by equal ratios; B has "
        "one "
        "column for all, or one for each; with another --sweep than columns any number, each solved with "
        "all");
    options.choice(
        "--sweep", sweep.way, words({"columns", "space", "auto", "direct"}),
        "columns: each of --damps is a column of the products; space: all right-hand sides share one space, "
        "and each gets the damping that --choose takes for it; auto: the same, but the space ends where it "
        "would cost more than columns, and cgls solves the rest; direct: they share singular values and "
        "vectors of A, and --solver is direct [columns]");
    options.choice(
        "--choose", sweep.rule, names_of({DampingRule::lcurve, DampingRule::discrepancy, DampingRule::gcv}),
        "chooses one of --damps: the corner of the L-curve; the largest with |B - A X| <= --noise; the least "
        "of the GCV function, with a random vector for each damping besides, but with --sweep direct");
    define_rows(options, "Sweep of the damping");
    options.choice(
        "--save", sweep.save, words({"all", "chosen"}),
        "which solutions --output gets: a column for each of --damps, or the chosen one alone [all; with "
        "another --sweep than columns chosen]");
    options.text("--curve", sweep.curve, "C.csv", "Writes D, |B - A X| and |X| for each of --damps as CSV");
    options.whole(
        "--space-dimension", sweep.space_dimension, "N", 1,
        "with --sweep space or auto the most vectors that it has: columns that need more take iterations "
        "[the columns of A]");
  }

  void define_stop(Options& options) {
    SolveOptions& solver = arguments_.options;
    options.group("When a column ends");
    options.number("--tolerance", solver.tolerance, "T", 0,
                   (tolerance_text(named_solvers()) + " [1e-8; f32 and c64: 1e-4]").c_str());
    options.text("--tolerances", arguments_.tolerances, "T.npy",
                 "A vector with a T for each column of B, or for each of --damps");
    define_rows(options, "When a column ends");
  }

  void define_method(Options& options) {
    options.group("Method");
    options.choice("--precondition", arguments_.precondition, words({"none", "column-norms"}),
                   "column-norms solves with A's columns made equally long [none]");
    options.choice("--one-pass", arguments_.one_pass, switches(),
                   "reads A once in an iteration, in stationary-a; auto: where that is faster [off; with A "
                   "on disks auto]");
    define_rows(options, "Method");
  }

  void define_results(Options& options) {
    define_product_report(options, arguments_.product);
    options.text("--history", arguments_.history, "H.csv",
                 "Writes each column's norms after each iteration as CSV");
    define_rows(options, "Results");
    options.parsed(
        "--sigma-min",
        [this](const std::string& text) {
          const bool is_way = text == "probable" || text == "proven";
          arguments_.sigma_min_way = is_way ? text : "";
          if (!is_way) arguments_.sigma_min = number(text, 0);
        },
        "S|proven|probable",
        "bounds the error of each x, given that no singular value of A is below S; with damping S may be 0; "
        "proven: by a factor of A, which has at least as many rows as columns; probable: where it has four "
        "times as many, by a random sketch of A");
    options.flag("--quiet", arguments_.quiet, "Prints no tables");
  }

  void define_safety(Options& options) {
    SolveOptions& solver = arguments_.options;
    options.group("Checkpoints and checks");
    options.text("--checkpoint", solver.checkpoint.directory, "DIR",
                 "Saves the state there, with --sweep space or auto the space, also when SIGUSR1, SIGTERM or "
                 "Ctrl-C comes, which then ends the run");
    options.parsed(
        "--checkpoint-every", [&solver](const std::string& text) { parse_interval(text, solver.checkpoint); },
        "N|TIME", "Saves after N iterations, or after a time: 30s, 10m, 2h [10m]");
    options.text("--restart", solver.checkpoint.restart, "DIR",
                 "Goes on from the state that was saved there");
    define_rows(options, "Checkpoints and checks");
  }

  /// Adds the options with this heading in the library's table and in the program's, but for those that have
  /// been added already.
  void define_rows(Options& options, const char* group) {
    for_each_option([&](const SolverOption& row, auto field) {
      define_row(options, group, row, arguments_.options.*field);
    });
    for_each_program_option([&](const SolverOption& row, auto value_of) {
      define_row(options, group, row, std::invoke(value_of, arguments_));
    });
  }

  static constexpr const char* automatic = "auto";
  SolveArguments arguments_;
  DependentOptions by_solver_{"--solver"};
};

}  // namespace

const std::vector<SolverOption>& options_of_solve() {
  static const std::vector<SolverOption> options = [] {
    std::vector<SolverOption> rows = solver_options();
    for_each_program_option([&rows](const SolverOption& row, auto) { rows.push_back(row); });
    return rows;
  }();
  return options;
}

Action define_solve(Options& options) {
  const auto command = std::make_shared<SolveCommand>();
  command->define(options);
  return [command, options](Communicator& world) { return command->run(world, options.given()); };
}

}  // namespace gridlops::program
