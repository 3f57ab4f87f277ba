// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "command_line/dependent_options.hpp"
#include "command_line/machine_file.hpp"
#include "command_line/option_parser.hpp"
#include "command_line/option_values.hpp"
#include "gridlops/base/error.hpp"
#include "solve/certify.hpp"
#include "solve/solve_task.hpp"
#include "solve/sweep.hpp"
#include "subcommands.hpp"

// The options of subcommands that work on a matrix in a file.

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
    by_solver_.follow_solver_table(options);
    options.examples(
        {"mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --damp 0.1",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --solver fista "
         "--lambda-relative 0.1 --tolerance 1e-3",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs B.npy --output X.npy --solver auto --damp "
         "0.1 --error 1e-2",
         "mpirun -n 4 gridlops solve --matrix compressed --certify waves/A.npy --rhs waves/B.npy "
         "--output X_waves.npy --damp 0.1",
         "mpirun -n 4 gridlops solve --matrix A.npy --rhs b.npy --output X.npy --damps "
         "1e-3:1e1:30 --curve curve.csv"});
  }

  ExitStatus run(Communicator& world) {
    if (arguments_.sweep.by_factor() && (solver_->count() == 0 || arguments_.chooses_solver)) {
      arguments_.solver = Solver::direct;
      arguments_.chooses_solver = false;
    }
    check();
    SolveArguments arguments = arguments_;
    arguments.one_pass_is_given = one_pass_->count() > 0;
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
    solver_ = options.parsed(
        "--solver",
        [this](const std::string& text) {
          arguments_.chooses_solver = text == automatic;
          arguments_.solver = arguments_.chooses_solver ? Solver::cgls : value_of(text, solvers());
        },
        joined(solvers(), "|") + "|" + automatic, about_solvers().c_str());
    define_table_options(options, "Problem", arguments_.options);
    CLI::Option *damp = options.find("--damp"), *lambda = options.find("--lambda");
    CLI::Option* damp_relative = options
                                     .number("--damp-relative", arguments_.damp_relative, "F", 0,
                                             "damping D = F |A|, where |A| is estimated")
                                     ->excludes(damp);
    lambda_ = lambda;
    options
        .number(
            "--lambda-relative", arguments_.lambda_relative, "F", 0,
            "of each column: lambda = F |A^H b|_inf; of the hard and half thresholds F times the least with "
            "which the first step from 0 ends there; with 1, and the soft threshold, x is 0; 0.1 to 0.01 "
            "are a start")
        ->excludes(lambda);
    options.text("--initial", arguments_.initial, "X0.npy", "Where to start [zero]");
    CLI::Option* space = options.text("--space", arguments_.space, "DIR",
                                      "Starts from the best X in the space that --checkpoint kept there for "
                                      "this A; B may be other data");
    define_sweep(options, arguments_.sweep)->excludes(damp)->excludes(damp_relative)->excludes(space);
  }

  /// Returns the option that asks for a sweep.
  CLI::Option* define_sweep(Options& options, SweepArguments& sweep) {
    options.group("Sweep of the damping");
    CLI::Option* damps = options.parsed(
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
    options
        .choice("--sweep", sweep.way, words({"columns", "space", "auto", "direct"}),
                "columns: each of --damps is a column of the products; space: all right-hand sides share one "
                "space, and each gets the damping that --choose takes for it; auto: the same, but the space "
                "ends where it would cost more than columns, and cgls solves the rest; direct: they share "
                "singular values and vectors of A, and --solver is direct [columns]")
        ->needs(damps);
    CLI::Option* choose = options.choice(
        "--choose", sweep.rule, names_of({DampingRule::lcurve, DampingRule::discrepancy, DampingRule::gcv}),
        "chooses one of --damps: the corner of the L-curve; the largest with |B - A X| <= --noise; the least "
        "of the GCV function, with a random vector for each damping besides, but with --sweep direct");
    options.number("--noise", sweep.noise, "S", 0, "the norm of the noise in B, for --choose discrepancy")
        ->needs(choose);
    options
        .choice(
            "--save", sweep.save, words({"all", "chosen"}),
            "which solutions --output gets: a column for each of --damps, or the chosen one alone [all; with "
            "another --sweep than columns chosen]")
        ->needs(choose);
    options.text("--curve", sweep.curve, "C.csv", "Writes D, |B - A X| and |X| for each of --damps as CSV")
        ->needs(damps);
    options
        .whole(
            "--space-dimension", sweep.space_dimension, "N", 1,
            "with --sweep space or auto the most vectors that it has: columns that need more take iterations "
            "[the columns of A]")
        ->needs(choose);
    choose->needs(damps);
    return damps;
  }

  void define_stop(Options& options) {
    SolveOptions& solver = arguments_.options;
    options.group("When a column ends");
    CLI::Option* tolerance =
        options.number("--tolerance", solver.tolerance, "T", 0,
                       (tolerance_text(named_solvers()) + " [1e-8; f32 and c64: 1e-4]").c_str());
    options
        .text("--tolerances", arguments_.tolerances, "T.npy",
              "A vector with a T for each column of B, or for each of --damps")
        ->excludes(tolerance);
    define_table_options(options, "When a column ends", solver);
  }

  void define_method(Options& options) {
    options.group("Method");
    precondition_ = options.choice("--precondition", arguments_.precondition, words({"none", "column-norms"}),
                                   "column-norms solves with A's columns made equally long [none]");
    one_pass_ =
        options.choice("--one-pass", arguments_.one_pass, switches(),
                       "reads A once in an iteration, in stationary-a; auto: where that is faster [off; "
                       "with A on disks auto]");
    define_table_options(options, "Method", arguments_.options);
  }

  void define_results(Options& options) {
    define_product_report(options, arguments_.product);
    options.text("--history", arguments_.history, "H.csv",
                 "Writes each column's norms after each iteration as CSV");
    variances_ =
        options.text("--variances", arguments_.variances, "V.npy",
                     "writes the diagonals of (A^H A + D^2 I)^-1: lsqr estimates them, direct is exact");
    options.parsed(
        "--sigma-min",
        [this](const std::string& text) {
          arguments_.probable_sigma_min = text == "probable";
          if (!arguments_.probable_sigma_min) arguments_.sigma_min = number(text, 0);
        },
        "S|probable",
        "bounds the error of each x, given that no singular value of A is below S; with damping S may be 0; "
        "probable: where A has four times as many rows as columns, by a random sketch of A");
    options.flag("--quiet", arguments_.quiet, "Prints no tables");
  }

  void define_safety(Options& options) {
    SolveOptions& solver = arguments_.options;
    options.group("Checkpoints and checks");
    CLI::Option* checkpoint =
        options.text("--checkpoint", solver.checkpoint.directory, "DIR",
                     "Saves the state there, with --sweep space or auto the space, also when "
                     "SIGUSR1, SIGTERM or Ctrl-C comes, which then ends the run");
    options
        .parsed(
            "--checkpoint-every",
            [&solver](const std::string& text) { parse_interval(text, solver.checkpoint); }, "N|TIME",
            "Saves after N iterations, or after a time: 30s, 10m, 2h [10m]")
        ->needs(checkpoint);
    options.text("--restart", solver.checkpoint.restart, "DIR",
                 "Goes on from the state that was saved there");
    define_table_options(options, "Checkpoints and checks", solver);
    options.flag("--verify-matrix", arguments_.verify_matrix,
                 "Fails with status 1, without X, if A has changed in memory during the solve");
  }

  /// Throws UsageError if a given option does not apply to the solver, or if one is missing.
  void check() const {
    const Solver solver = arguments_.solver;
    by_solver_.check(name_of(solver));
    require_compatible(request_of(arguments_, false));
    if (variances_->count() > 0 && precondition_->count() > 0) {
      throw UsageError(
          "--variances and --precondition exclude each other: with scaled columns the estimates are those of "
          "the scaled X");
    }
    check_sweep(arguments_);
    check_space(arguments_);
    check_certify(arguments_);
    if (arguments_.options.error > 0 && precondition_->count() > 0)
      throw UsageError(
          "--error and --precondition exclude each other: the solver finds z of x = P z, and the error is "
          "that of x");
    if (arguments_.bounds_errors() && arguments_.sigma_min.value_or(0) == 0 &&
        !arguments_.probable_sigma_min && !arguments_.is_damped())
      throw UsageError(
          "nothing bounds errors without damping, unless --sigma-min says that no singular value of A is "
          "near 0");
    if (row_of(solver).has(Feature::penalty) && lambda_->count() == 0 && !arguments_.lambda_relative) {
      throw UsageError(
          fmt::format("--solver {} needs --lambda, the weight of the penalty that makes X sparse, or "
                      "--lambda-relative, 0.1 say; 0 would be least squares, which lsqr solves in far fewer "
                      "iterations",
                      name_of(solver)));
    }
  }

  static constexpr const char* automatic = "auto";
  SolveArguments arguments_;
  DependentOptions by_solver_{"--solver"};
  const CLI::Option *solver_ = nullptr, *one_pass_ = nullptr, *precondition_ = nullptr, *variances_ = nullptr,
                    *lambda_ = nullptr;
};

}  // namespace

void define_products(Options& options, ProductArguments& product) {
  options.group("Ranks and products");
  options.parsed(
      "--grid", [&product](const std::string& text) { product.grid = parse_grid_shape(text); }, "PxQ",
      "Process grid: its rows and columns [the fastest by the model]");
  options.choice("--algorithm", product.algorithm, algorithms(), "How products are formed [auto]");
  options.whole("--panel", product.panel, "W", 0, "Width of the panels that travel [0: chosen]");
  options.choice("--transport", product.transport, transports(), "What carries the data [auto]");
  options.choice("--device", product.device, words({"cpu", "gpu"}),
                 "Where matrices live and products run [cpu]");
  options.text("--machine", product.machine, "FILE", about_machine);
}

void define_product_report(Options& options, ProductArguments& product) {
  options.group("Results");
  options.text("--report", product.report, "R.json",
               "Writes the problem and figures of the run as JSON, which gridlops report compares");
  options.flag("--hashes", product.hashes,
               "The report has the files' XXH3 hashes, as xxhsum -H3 prints them");
}

Action define_solve(Options& options) {
  const auto command = std::make_shared<SolveCommand>();
  command->define(options);
  return [command](Communicator& world) { return command->run(world); };
}

}  // namespace gridlops::program
