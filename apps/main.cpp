// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "command_line/dependent_options.hpp"
#include "command_line/machine_file.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/base/error.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

using Kind = MakeProblemArguments::Kind;

const Names<Kind> kinds{{"random", Kind::random}, {"spd", Kind::spd}, {"multiples", Kind::multiples}};

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
            "Runs alone or under mpirun. Exit status: 0 done, 1 a result was found wrong, 2 wrong usage, "
            "3 some\n"
            "column did not converge, 65 bad input, 70 internal error, 71 out of memory, 74 output not "
            "written,\n"
            "75 a rank was lost, or a checkpoint was asked for; docs/errors.md says what to do.",
            {"GRIDLOPS_BENCH_"}) {
    define_make_problem();
    add_multiply(*this);
    add_solve(*this);
    define_plan();
    define_calibrate();
    add_lsm(*this);
    add_mdd(*this);
    add_poststack(*this);
    add_reflectivity(*this);
    add_subcommand("info", "What was built, what was found at run time, and advice", info)
        .examples({"gridlops info", "mpirun -n 4 gridlops info"});
    Options report = add_subcommand("report", "Compares runs by their reports in a table",
                                    [this](Communicator& world) { return compare_reports(world, reports_); });
    report.words("R.json", reports_, "What --report of other subcommands has written");
    report.examples({"gridlops report R.json", "gridlops report first.json second.json"});
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
    options.examples(
        {"mpirun -n 4 gridlops make-problem --rows 3000 --cols 2000 --rhs 8 --out problem",
         "gridlops make-problem --rows 500 --cols 500 --rhs 2 --kind spd --condition 50 --out positive"});
  }

  void define_plan() {
    Options options = add_subcommand("plan", "Says how numbers of ranks would solve, and how long it takes",
                                     [this](Communicator& world) {
                                       plan_by_solver_.check(name_of(plan_.asked.solver));
                                       return plan(world, plan_);
                                     });
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
    options.choice("--solver", plan_.asked.solver, solvers(), "The method [cgls]");
    options.choice("--one-pass", plan_.asked.one_pass, switches(),
                   "reads A once in an iteration, in stationary-a [off]");
    options.whole("--iterations", plan_.iterations, "K", 0, "Iterations of every column [100]");
    options.choice("--algorithm", plan_.asked.algorithm, algorithms(), "How products are formed [auto]");
    options.choice("--transport", plan_.transport, transports_of_plans(), "What carries the data [mpi]");
    options.parsed(
        "--memory-per-rank",
        [this](const std::string& text) { plan_.memory_per_rank = size_number(text, 1); }, "BYTES",
        "The most memory that a rank may take; 4G [any]");
    options.text("--machine", plan_.machine, "FILE", about_machine);
    options.text("--json", plan_.json, "FILE", "Writes the plans as JSON");
    plan_by_solver_.follow_solver_table(options);
    options.examples(
        {"gridlops plan --matrix-size 100000x20000 --rhs 64 --ranks 1..1024",
         "gridlops plan --matrix-size 100000x20000 --rhs 64 --grid 4x4,2x8 --memory-per-rank 2G"});
  }

  void define_calibrate() {
    Options options =
        add_subcommand("calibrate", "Measures products on this machine, by which auto chooses from then on",
                       [this](Communicator& world) { return calibrate(world, calibrate_); });
    options.choice("--dtype", calibrate_.type, scalar_types(), "Type of the elements [all]");
    options.examples({"gridlops calibrate --dtype f64", "mpirun -n 16 gridlops calibrate"});
  }

  MakeProblemArguments problem_;
  PlanArguments plan_;
  DependentOptions plan_by_solver_{"--solver"};
  CalibrateArguments calibrate_;
  std::vector<std::string> reports_;
};

}  // namespace

}  // namespace gridlops::program

int main(int argc, char** argv) {
  gridlops::program::Gridlops command_line;
  return gridlops::program::run_program(argc, argv, command_line);
}
