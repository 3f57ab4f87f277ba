// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/choose_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gridlops/solve/factor.hpp"

namespace gridlops::program {

namespace {

/// Why cgls is to do what is asked for; empty if others can.
std::string need_of_cgls(const SolveArguments& arguments) {
  if (!arguments.certify.empty()) return "--certify takes conjugate gradients";
  if (arguments.needs_space()) return "a space is asked for, and cgls gives the verdicts";
  if (!arguments.sweep.damps.empty()) return "the columns have dampings of their own";
  if (arguments.one_pass != false) return "--one-pass is asked for";
  return {};
}

/// Why the right-hand sides cannot share a space; empty if they can. at_once: how many are solved together.
/// The limits are those of docs/performance-notes.md.
std::string obstacle_to_block(const SolveArguments& arguments, const ProductShape& shape, Index at_once) {
  constexpr Index few = 4;
  const Index dimension = std::min(shape.rows, shape.cols);
  if (!may_be(arguments.product.algorithm, Algorithm::stationary_a))
    return "block-cgls takes another --algorithm";
  if (at_once < few) return fmt::format("only {} of the right-hand sides would share a space", at_once);
  if (at_once > dimension / few)
    return fmt::format(
        "a block of {} right-hand sides would cost more than it saves where A has {} dimensions", at_once,
        dimension);
  return {};
}

/// Whether a factor is possible, and takes no more memory of a rank than its operands, or than 1 GiB.
bool may_factor(const SolveArguments& arguments, const ProductShape& shape, int ranks) {
  constexpr Index always = Index{1} << 30;
  const Index of_operands =
      (shape.rows * shape.cols + (shape.rows + shape.cols) * shape.nrhs) * size_of(shape.type) / ranks;
  return arguments.precondition == "none" && arguments.product.device == "cpu" &&
         factor_bytes(shape.rows, shape.cols, shape.type, shape.nrhs, ranks).while_made <=
             std::max(always, of_operands);
}

/// Why a factor pays off: it costs at most as much as the few iterations that any solve needs. Empty if it
/// does not. seconds: of cgls.
std::string reason_for_factor(const SolveArguments& arguments, const ProductShape& shape,
                              const SolverSeconds& seconds) {
  constexpr double few_iterations = 3;
  const Index batch = arguments.options.batch,
              batches = batch > 0 ? (shape.nrhs + batch - 1) / batch : Index{1};
  const double iteration = seconds.iteration * static_cast<double>(batches);
  if (seconds.factor > few_iterations * iteration) return {};
  return fmt::format("the model predicts {:.2g} s for a factor, and {:.2g} s for an iteration of cgls",
                     seconds.factor, iteration);
}

}  // namespace

std::pair<Solver, std::string> choose_solver(
    const SolveTask& task, int ranks, const std::function<std::optional<SolverSeconds>(Solver)>& seconds) {
  const SolveArguments& arguments = task.arguments;
  const ProductShape& shape = task.shape;
  for (const Solver solver : {Solver::cgls, Solver::block_cgls, Solver::direct})
    if (saved_fact(task.saved, "--solver") == name_of(solver)) return {solver, "the run that goes on has it"};
  if (std::string need = need_of_cgls(arguments); !need.empty()) return {Solver::cgls, std::move(need)};
  const std::optional<SolverSeconds> single = seconds(Solver::cgls);
  if (single && may_factor(arguments, shape, ranks))
    if (std::string reason = reason_for_factor(arguments, shape, *single); !reason.empty())
      return {Solver::direct, std::move(reason)};
  const Index batch = arguments.options.batch, at_once = batch > 0 ? std::min(batch, shape.nrhs) : shape.nrhs;
  if (std::string obstacle = obstacle_to_block(arguments, shape, at_once); !obstacle.empty())
    return {Solver::cgls, std::move(obstacle)};
  std::string why = fmt::format("{} right-hand sides can share a space", at_once);
  const std::optional<SolverSeconds> block = seconds(Solver::block_cgls);
  if (block && single)
    why += fmt::format("; the model predicts {:.2g} s for an iteration, and {:.2g} s for one of cgls",
                       block->iteration, single->iteration);
  return {Solver::block_cgls, std::move(why)};
}

}  // namespace gridlops::program
