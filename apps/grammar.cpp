// SPDX-License-Identifier: BSD-3-Clause
#include "grammar.hpp"

#include "checkpointing.hpp"
#include "parsing.hpp"
#include "solver_choice.hpp"
#include "vocabulary.hpp"

namespace gridlops::program {

namespace {

using Kind = MakeProblemArguments::Kind;

const Names<Kind> kinds{{"random", Kind::random}, {"spd", Kind::spd}, {"multiples", Kind::multiples}};

const Names<Threshold> thresholds{
    {"soft", Threshold::soft}, {"hard", Threshold::hard}, {"half", Threshold::half}};

}  // namespace

Grammar::Grammar()
    : app_("Distributed products and least-squares solutions with matrices in .npy files", "gridlops") {
  app_.footer(
      "Runs alone or under mpirun. Exit status: 0 done, 1 a check failed, 2 wrong usage, 3 some column did "
      "not\n"
      "converge, 65 bad input, 70 internal error, 71 out of memory, 74 output not written, 75 try again.");
  define_make_problem();
  define_multiply();
  define_solve();
  app_.add_subcommand("info", "What was built, what was found at run time, and advice");
  complete(app_);
}

Command Grammar::command() const {
  const std::string name = subcommand_given(app_)->get_name();
  if (name == "make-problem") return make_problem_;
  if (name == "multiply") return multiply_;
  if (name == "solve") {
    check_solver_options(*subcommand_given(app_), solve_.solver);
    return solve_;
  }
  return InfoArguments();
}

void Grammar::define_make_problem() {
  OptionList list(
      *app_.add_subcommand("make-problem", "Writes A.npy, B.npy and X_true.npy of a test problem"));
  list.whole("--rows", make_problem_.rows, "M", 0, "Rows of A")->required();
  list.whole("--cols", make_problem_.cols, "N", 0, "Columns of A")->required();
  list.whole("--rhs", make_problem_.nrhs, "R", 0, "Right-hand sides")->required();
  list.choice("--dtype", make_problem_.type, types(), "Type of the elements [f64; multiples: c128]");
  list.choice("--kind", make_problem_.kind, kinds,
              "Random, Hermitian positive definite, or seismic internal multiples [random]");
  list.number("--condition", make_problem_.condition, "C", 1,
              "Condition number of A [random: as it comes; spd: 100]");
  list.number("--noise", make_problem_.noise, "S", 0, "Noise in B, relative to each column's norm [0]");
  list.whole("--seed", make_problem_.seed, "S", 0, "Of the pseudo-random numbers [1]");
  list.text("--out", make_problem_.directory, "DIR", "Where the files go; made if missing")->required();
}

void Grammar::define_product(OptionList& list, ProductArguments& product) {
  list.text("--matrix", product.matrix, "A.npy", "A")->required();
  list.converted(
      "--grid", [&product](const std::string& text) { product.grid = parse_grid_shape(text); }, grid_problem,
      "PxQ", "Process grid: its rows and columns [near-square]");
  list.choice("--algorithm", product.algorithm, algorithms(), "How products are formed [auto]");
  list.choice("--summa-form", product.summa_form, summa_forms(),
              "summa: how panels come to ranks [broadcast]");
  list.whole("--panel", product.panel, "W", 0, "Width of the panels that travel [0: chosen]");
  list.choice("--transport", product.transport,
              {"auto", "mpi", "chain", "one-sided", "shared", "mixed", "nccl"},
              "What carries the data [auto]");
  list.choice("--device", product.device, {"cpu", "gpu"}, "Where matrices live and products run [cpu]");
  list.text("--report", product.report, "R.json", "Writes figures of the run as JSON");
}

void Grammar::define_multiply() {
  OptionList list(*app_.add_subcommand("multiply", "Y = A X, or Y = A^H X"));
  list.text("--input", multiply_.input, "X.npy", "X")->required();
  list.text("--output", multiply_.output, "Y.npy", "Y")->required();
  list.flag("--adjoint", multiply_.adjoint, "Multiplies with the conjugate transpose of A");
  define_product(list, multiply_.product);
}

void Grammar::define_solve() {
  OptionList list(*app_.add_subcommand("solve", "Minimises |A X - B|^2 + D^2 |X|^2, column by column"));
  list.text("--rhs", solve_.rhs, "B.npy", "B: each column is a right-hand side")->required();
  list.text("--output", solve_.output, "X.npy", "X")->required();
  list.choice("--solver", solve_.solver, solver_names(),
              "Least squares; sparse models (ista, fista); (A + D^2 I) X = B (cg) [cgls]");
  list.whole("--iterations", solve_.iterations, "K", 0, "The most of any column [100]");
  list.number("--tolerance", solve_.tolerance, "T", 0,
              "On each column's relative normal residual [1e-8; f32 and c64: 1e-4]");
  list.number("--atol", solve_.atol, "T", 0, "lsqr, lsmr: on |A^H r| / (|A| |r|) [the tolerance]");
  list.number("--btol", solve_.btol, "T", 0, "lsqr, lsmr: on |r| / |b| [the tolerance]");
  list.number("--conlim", solve_.condition_limit, "C", 0,
              "lsqr, lsmr: stops where cond(A) seems larger [0: never]");
  CLI::Option* damp = list.number("--damp", solve_.damp, "D", 0, "Damping [0]");
  list.number("--damp-relative", solve_.damp_relative, "F", 0, "Damping D = F |A|, where |A| is estimated")
      ->excludes(damp);
  list.choice("--precondition", solve_.precondition, {"none", "column-norms"},
              "Least squares: column-norms solves with A's columns made equally long [none]");
  list.choice("--one-pass", solve_.one_pass, {"auto", "on", "off"},
              "cgls: reads A once in an iteration, in stationary-a; auto: where that is faster [off]");
  list.choice("--storage", solve_.storage, storages(),
              "block, stationary-a: how A is stored; panels: read in one piece, made of its columns [auto]");
  list.number("--lambda", solve_.lambda, "L", 0,
              "ista, fista: the weight of the penalty; PyLops' eps is 2 L");
  list.number("--step", solve_.step, "S", 0, "ista, fista: length of the steps [1/|A|^2, estimated]");
  list.choice("--threshold", solve_.threshold, thresholds,
              "ista, fista: the penalty is |x|_1, the number of x != 0, or the sum of sqrt|x| / 2 [soft]");
  list.flag("--backtracking", solve_.backtracking, "ista, fista: a column's steps shorten where too long");
  list.flag("--monotone", solve_.monotone, "fista: momentum starts anew where the objective would rise");
  list.text("--initial", solve_.initial, "X0.npy", "Where to start [zero]");
  list.text("--variances", solve_.variances, "V.npy",
            "lsqr: writes the diagonals of (A^H A + D^2 I)^-1, estimated column by column");
  list.whole("--batch", solve_.batch, "COLUMNS", 0, "So many columns at a time, to save memory [0: all]");
  list.flag("--column-stable", solve_.column_stable, "A column's bits do not depend on the other columns");
  CLI::Option* checkpoint =
      list.text("--checkpoint", solve_.checkpoint.directory, "DIR",
                "Saves the state there, also when SIGUSR1, SIGTERM or Ctrl-C comes, which then ends the run");
  list.converted(
          "--checkpoint-every", [this](const std::string& text) { take_interval(text, solve_.checkpoint); },
          interval_problem, "N|TIME", "After so many iterations, or so long: 30s, 10m, 2h [10m]")
      ->needs(checkpoint);
  list.text("--restart", solve_.checkpoint.restart, "DIR", "Goes on from the state that was saved there");
  list.flag("--dry-run", solve_.dry_run, "Says what memory and traffic there would be, and stops");
  list.text("--history", solve_.history, "H.csv", "Writes each column's norms after each iteration");
  list.flag("--quiet", solve_.quiet, "Prints no tables");
  define_product(list, solve_.product);
}

}  // namespace gridlops::program
