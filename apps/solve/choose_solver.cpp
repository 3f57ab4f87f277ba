// SPDX-License-Identifier: BSD-3-Clause
#include "solve/choose_solver.hpp"

#include <fmt/format.h>

namespace gridlops::program {

namespace {

/// What keeps the right-hand sides from sharing a space; null if nothing does.
const char* obstacle(const SolveArguments& arguments, Index columns) {
  const Algorithm algorithm = arguments.product.algorithm;
  if (arguments.needs_space()) return "a space is asked for, and cgls gives the verdicts";
  if (!arguments.sweep.damps.empty()) return "the columns have dampings of their own";
  if (arguments.one_pass != false) return "--one-pass is asked for";
  if (algorithm != Algorithm::automatic && algorithm != Algorithm::stationary_a)
    return "block-cgls takes another --algorithm";
  if (columns < 2) return "there is one right-hand side";
  if (arguments.options.batch == 1) return "--batch 1 solves one right-hand side at a time";
  return nullptr;
}

}  // namespace

ChosenSolver choose_solver(const SolveArguments& arguments, const CheckpointFacts& saved, Index columns,
                           const std::function<double(Solver)>& seconds) {
  for (const Solver solver : {Solver::cgls, Solver::block_cgls})
    if (saved_fact(saved, "--solver") == name_of(solver)) return {solver, "the run that goes on has it"};
  if (const char* const reason = obstacle(arguments, columns); reason != nullptr)
    return {Solver::cgls, reason};
  // With fewer iterations than half those of cgls, a block is faster all the same.
  constexpr double most = 2;
  const double alone = seconds(Solver::cgls), together = seconds(Solver::block_cgls);
  const std::string predicted =
      fmt::format("the model predicts {:.2g} s for an iteration of block-cgls, and {:.2g} s for one of cgls",
                  together, alone);
  if (together > most * alone) return {Solver::cgls, predicted};
  return {Solver::block_cgls, fmt::format("{} right-hand sides can share a space; {}", columns, predicted)};
}

}  // namespace gridlops::program
