// SPDX-License-Identifier: BSD-3-Clause
#include "solve/choose_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace gridlops::program {

namespace {

/// What keeps the right-hand sides from sharing a space; empty if nothing does. at_once: how many are solved
/// together. The limits are those of docs/performance-notes.md.
std::string obstacle(const SolveArguments& arguments, const ProductShape& shape, Index at_once) {
  constexpr Index few = 4;
  const Algorithm algorithm = arguments.product.algorithm;
  const Index dimension = std::min(shape.rows, shape.cols);
  if (!arguments.certify.empty()) return "--certify takes conjugate gradients";
  if (arguments.needs_space()) return "a space is asked for, and cgls gives the verdicts";
  if (!arguments.sweep.damps.empty()) return "the columns have dampings of their own";
  if (arguments.one_pass != false) return "--one-pass is asked for";
  if (algorithm != Algorithm::automatic && algorithm != Algorithm::stationary_a)
    return "block-cgls takes another --algorithm";
  if (at_once < few) return fmt::format("only {} of the right-hand sides would share a space", at_once);
  if (at_once > dimension / few)
    return fmt::format(
        "a block of {} right-hand sides would cost more than it saves where A has {} dimensions", at_once,
        dimension);
  return {};
}

}  // namespace

ChosenSolver choose_solver(const SolveArguments& arguments, const CheckpointFacts& saved,
                           const ProductShape& shape,
                           const std::function<std::optional<double>(Solver)>& seconds) {
  for (const Solver solver : {Solver::cgls, Solver::block_cgls})
    if (saved_fact(saved, "--solver") == name_of(solver)) return {solver, "the run that goes on has it"};
  const Index batch = arguments.options.batch, at_once = batch > 0 ? std::min(batch, shape.nrhs) : shape.nrhs;
  if (std::string reason = obstacle(arguments, shape, at_once); !reason.empty())
    return {Solver::cgls, std::move(reason)};
  std::string why = fmt::format("{} right-hand sides can share a space", at_once);
  const std::optional<double> block = seconds(Solver::block_cgls), single = seconds(Solver::cgls);
  if (block && single)
    why += fmt::format("; the model predicts {:.2g} s for an iteration, and {:.2g} s for one of cgls", *block,
                       *single);
  return {Solver::block_cgls, std::move(why)};
}

}  // namespace gridlops::program
