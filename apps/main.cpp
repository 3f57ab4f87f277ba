// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/error.hpp"
#include "option_parser.hpp"
#include "run_program.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

using Kind = MakeProblemArguments::Kind;

const Names<Kind> kinds{{"random", Kind::random}, {"spd", Kind::spd}, {"multiples", Kind::multiples}};

const Names<Threshold> thresholds{
    {"soft", Threshold::soft}, {"hard", Threshold::hard}, {"half", Threshold::half}};

using Solvers = std::vector<std::string>;

const Solvers all_solvers{"cgls", "lsqr", "lsmr", "block-cgls", "cg", "ista", "fista"};
const Solvers least_squares{"cgls", "lsqr", "lsmr", "block-cgls"};
const Solvers damped{"cgls", "lsqr", "lsmr", "block-cgls", "cg"};
const Solvers bidiagonal{"lsqr", "lsmr"};
const Solvers sparse{"ista", "fista"};

constexpr const char* about_machine =
    "What gridlops-bench calibrate measured [GRIDLOPS_MACHINE, or a common cluster core]";

/// "20" is a number of iterations, "30s", "10m" and "2h" are times.
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

/// The options of all subcommands, and the variables behind them.
class Gridlops : public CommandLine {
 public:
  Gridlops()
      : CommandLine(
            "gridlops", "Distributed products and least-squares solutions with matrices in .npy files",
            "Runs alone or under mpirun. Exit status: 0 done, 1 a check failed, 2 wrong usage, 3 some column "
            "did not\n"
            "converge, 65 bad input, 70 internal error, 71 out of memory, 74 output not written, 75 try "
            "again.",
            {"GRIDLOPS_BENCH_"}) {
    define_make_problem();
    define_multiply();
    define_solve();
    define_plan();
    define_calibrate();
    add_lsm(*this);
    add_mdd(*this);
    add_poststack(*this);
    add_reflectivity(*this);
    add_subcommand("info", "What was built, what was found at run time, and advice", info);
  }

 private:
  void define_make_problem() {
    Options options = add_subcommand("make-problem", "Writes A.npy, B.npy and X_true.npy of a test problem",
                                     [this](Communicator& world) { return make_problem(world, problem_); });
    options.whole("--rows", problem_.rows, "M", 0, "Rows of A")->required();
    options.whole("--cols", problem_.cols, "N", 0, "Columns of A")->required();
    options.whole("--rhs", problem_.nrhs, "R", 0, "Right-hand sides")->required();
    options.choice("--dtype", problem_.type, scalar_types(), "Type of the elements [f64; multiples: c128]");
    options.choice("--kind", problem_.kind, kinds,
                   "Random, Hermitian positive definite, or seismic internal multiples [random]");
    options.number("--condition", problem_.condition, "C", 1,
                   "Condition number of A [random: as it comes; spd: 100]");
    options.number("--noise", problem_.noise, "S", 0, "Noise in B, relative to each column's norm [0]");
    options.whole("--seed", problem_.seed, "S", 0, "Seed of the pseudo-random numbers [1]");
    options.text("--out", problem_.directory, "DIR", "Where the files go; made if missing")->required();
  }

  static void define_product(Options& options, ProductArguments& product) {
    options.text("--matrix", product.matrix, "A.npy", "A")->required();
    options.parsed(
        "--grid", [&product](const std::string& text) { product.grid = parse_grid_shape(text); }, "PxQ",
        "Process grid: its rows and columns [the fastest by the model]");
    options.choice("--algorithm", product.algorithm, algorithms(), "How products are formed [auto]");
    options.whole("--panel", product.panel, "W", 0, "Width of the panels that travel [0: chosen]");
    options.choice("--transport", product.transport, transports(), "What carries the data [auto]");
    options.choice("--device", product.device, words({"cpu", "gpu"}),
                   "Where matrices live and products run [cpu]");
    options.text("--machine", product.machine, "FILE", about_machine);
    options.text("--report", product.report, "R.json", "Writes figures of the run as JSON");
  }

  void define_multiply() {
    Options options = add_subcommand("multiply", "Y = A X, or Y = A^H X",
                                     [this](Communicator& world) { return multiply(world, multiply_); });
    options.text("--input", multiply_.input, "X.npy", "X")->required();
    options.text("--output", multiply_.output, "Y.npy", "Y")->required();
    options.flag("--adjoint", multiply_.adjoint, "Multiplies with the conjugate transpose of A");
    define_product(options, multiply_.product);
  }

  void define_solve() {
    Options options = add_subcommand("solve", "Minimises |A X - B|^2 + D^2 |X|^2, column by column",
                                     [this](Communicator& world) {
                                       check_solver_options();
                                       return solve(world, solve_);
                                     });
    SolveOptions& solver = solve_.options;
    solver.checkpoint.every_seconds = 600;
    options.text("--rhs", solve_.rhs, "B.npy", "B: each column is a right-hand side")->required();
    options.text("--output", solve_.output, "X.npy", "X")->required();
    options.choice("--solver", solve_.solver, words(all_solvers),
                   "Least squares; sparse models (ista, fista); (A + D^2 I) X = B (cg) [cgls]");
    options.whole("--iterations", solver.max_iterations, "K", 0, "The most iterations of any column [100]");
    options.number("--tolerance", solver.tolerance, "T", 0,
                   "On each column's relative normal residual [1e-8; f32 and c64: 1e-4]");
    only(bidiagonal, options.number("--atol", solver.atol, "T", 0, "on |A^H r| / (|A| |r|) [the tolerance]"));
    only(bidiagonal, options.number("--btol", solver.btol, "T", 0, "on |r| / |b| [the tolerance]"));
    only(bidiagonal, options.number("--conlim", solver.condition_limit, "C", 0,
                                    "stops where cond(A) seems larger [0: never]"));
    CLI::Option* damp = only(damped, options.number("--damp", solver.damp, "D", 0, "damping [0]"));
    only(damped, options.number("--damp-relative", solve_.damp_relative, "F", 0,
                                "damping D = F |A|, where |A| is estimated"))
        ->excludes(damp);
    only(least_squares, options.choice("--precondition", solve_.precondition, words({"none", "column-norms"}),
                                       "column-norms solves with A's columns made equally long [none]"));
    only({"cgls"}, options.choice("--one-pass", solve_.one_pass, words({"auto", "on", "off"}),
                                  "reads A once in an iteration, in stationary-a; auto: where that is faster "
                                  "[off]"));
    options.choice(
        "--storage", solve_.storage, storages(),
        "block, stationary-a: how A is stored; packed: in the order in which products read it [auto]");
    only(sparse,
         options.number("--lambda", solve_.lambda, "L", 0, "the weight of the penalty; PyLops' eps is 2 L"));
    only(sparse, options.number("--step", solve_.step, "S", 0, "length of the steps [1/|A|^2, estimated]"));
    only(sparse,
         options.choice("--threshold", solve_.threshold, thresholds,
                        "the penalty is |x|_1, the number of x != 0, or the sum of sqrt|x| / 2 [soft]"));
    only(sparse, options.flag("--backtracking", solve_.backtracking,
                              "shortens a column's steps where they are too long"));
    only({"fista"}, options.flag("--monotone", solve_.monotone,
                                 "starts the momentum anew where the objective would rise"));
    options.text("--initial", solve_.initial, "X0.npy", "Where to start [zero]");
    only({"lsqr"}, options.text("--variances", solve_.variances, "V.npy",
                                "writes the diagonals of (A^H A + D^2 I)^-1, estimated column by column"));
    options.whole("--batch", solver.batch, "COLUMNS", 0,
                  "So many columns at a time, to save memory [0: all]");
    options.whole("--guard", solver.guard, "N", 0,
                  "Every N iterations compares the recurrence with B - A X: finds flipped bits [0: never]");
    options.flag("--verify-matrix", solve_.verify_matrix,
                 "Fails with status 1, without X, if A has changed in memory during the solve");
    options.flag("--column-stable", solver.column_stable,
                 "A column's bits do not depend on the other columns");
    CLI::Option* checkpoint = options.text(
        "--checkpoint", solver.checkpoint.directory, "DIR",
        "Saves the state there, also when SIGUSR1, SIGTERM or Ctrl-C comes, which then ends the run");
    options
        .parsed(
            "--checkpoint-every",
            [&solver](const std::string& text) { parse_interval(text, solver.checkpoint); }, "N|TIME",
            "After so many iterations, or so long: 30s, 10m, 2h [10m]")
        ->needs(checkpoint);
    options.text("--restart", solver.checkpoint.restart, "DIR",
                 "Goes on from the state that was saved there");
    options.flag("--dry-run", solve_.dry_run, "Says what memory and traffic there would be, and stops");
    options.text("--history", solve_.history, "H.csv", "Writes each column's norms after each iteration");
    options.flag("--quiet", solve_.quiet, "Prints no tables");
    define_product(options, solve_.product);
  }

  void define_plan() {
    Options options = add_subcommand("plan", "Says how numbers of ranks would solve, and how long it takes",
                                     [this](Communicator& world) { return plan(world, plan_); });
    options
        .parsed(
            "--matrix-size",
            [this](const std::string& text) {
              const std::size_t cross = text.find_first_of("xX");
              plan_.shape.rows = whole_number(text.substr(0, cross), 0);
              plan_.shape.cols = whole_number(cross == std::string::npos ? "" : text.substr(cross + 1), 0);
            },
            "MxN", "Rows and columns of A")
        ->required();
    options.whole("--rhs", plan_.shape.nrhs, "R", 0, "Right-hand sides")->required();
    options.choice("--dtype", plan_.shape.type, scalar_types(), "Type of the elements [f64]");
    options.parsed(
        "--ranks",
        [this](const std::string& text) {
          plan_.ranks = numbers(text);
          for (const Index ranks : plan_.ranks) check_ranks(ranks);
        },
        "N[,...]", "Numbers of ranks: 4,6; 1..1024 doubles; 8..64+8 adds [1]");
    options.parsed(
        "--grid",
        [this](const std::string& text) {
          plan_.grids.clear();
          for (const std::string& item : items(text)) {
            plan_.grids.push_back(parse_grid_shape(item));
            check_ranks(plan_.grids.back().size());
          }
        },
        "PxQ[,...]", "Plans for these grids [the fastest by the model]");
    options.choice("--solver", plan_.solver,
                   names_of({Solver::cgls, Solver::lsqr, Solver::lsmr, Solver::block_cgls, Solver::cg,
                             Solver::ista, Solver::fista}),
                   "The method [cgls]");
    options.choice("--one-pass", plan_.one_pass, words({"auto", "on", "off"}),
                   "cgls: reads A once in an iteration, in stationary-a [off]");
    options.whole("--iterations", plan_.iterations, "K", 0, "Iterations of every column [100]");
    options.choice("--algorithm", plan_.algorithm, algorithms(), "How products are formed [auto]");
    options.choice("--transport", plan_.transport, transports_of_plans(), "What carries the data [mpi]");
    options.parsed(
        "--memory-per-rank",
        [this](const std::string& text) { plan_.memory_per_rank = size_number(text, 1); }, "BYTES",
        "The most memory that a rank may take; 4G [any]");
    options.text("--machine", plan_.machine, "FILE", about_machine);
    options.text("--json", plan_.json, "FILE", "Writes the plans as JSON");
  }

  void define_calibrate() {
    Options options =
        add_subcommand("calibrate", "Measures products on this machine, by which auto chooses from then on",
                       [this](Communicator& world) { return calibrate(world, calibrate_); });
    options.choice("--dtype", calibrate_.type, scalar_types(), "Type of the elements [all]");
  }

  /// Makes an option one of these solvers only.
  CLI::Option* only(const Solvers& solvers, CLI::Option* option) {
    option->description(fmt::format("{}: {}", joined(words(solvers), ", "), option->get_description()));
    solvers_of_options_.emplace_back(option, solvers);
    return option;
  }

  /// Throws UsageError if an option was given that the solver does not have, or if one is missing.
  void check_solver_options() const {
    const std::string& solver = solve_.solver;
    for (const auto& [option, solvers] : solvers_of_options_) {
      if (option->count() == 0 || std::find(solvers.begin(), solvers.end(), solver) != solvers.end())
        continue;
      throw UsageError(fmt::format("{} is an option of --solver {}, and means nothing to {}",
                                   option->get_name(), joined(words(solvers), ", "), solver));
    }
    if (has("--variances") && has("--precondition")) {
      throw UsageError(
          "--variances and --precondition exclude each other: with scaled columns the estimates are those of "
          "the scaled X");
    }
    if (solve_.one_pass == "on" && solve_.precondition == "column-norms") {
      throw UsageError(
          "--one-pass on and --precondition column-norms exclude each other: with scaled columns the "
          "operator is a product, which has no normal product of its own");
    }
    if ((solver == "ista" || solver == "fista") && !has("--lambda")) {
      throw UsageError(
          fmt::format("--solver {} needs --lambda, the weight of the penalty that makes X sparse; 0 would be "
                      "least squares, which lsqr solves in far fewer iterations",
                      solver));
    }
  }

  MakeProblemArguments problem_;
  MultiplyArguments multiply_;
  SolveArguments solve_;
  PlanArguments plan_;
  CalibrateArguments calibrate_;
  std::vector<std::pair<const CLI::Option*, Solvers>> solvers_of_options_;
};

}  // namespace

}  // namespace gridlops::program

int main(int argc, char** argv) {
  gridlops::program::Gridlops command_line;
  return gridlops::program::run_program(argc, argv, command_line);
}
