// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/choose_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "command_line/console.hpp"
#include "gridlops/solve/factor.hpp"

namespace gridlops::program {

namespace {

/// Why cgls is to do what is asked for; empty if others can.
std::string need_of_cgls(const SolveArguments& arguments) {
  if (!arguments.certify.empty()) return "--certify takes conjugate gradients";
  if (arguments.weighs()) return "columns with weights of their own share neither a space nor a factor";
  if (arguments.needs_space()) return "a space is asked for, and cgls gives the verdicts";
  if (!arguments.sweep.damps.empty()) return "the columns have dampings of their own";
  if (arguments.one_pass != false) return "--one-pass is asked for";
  if (arguments.options.column_stable) return "--column-stable is asked for";
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

/// Why no factor is possible, or one would take more memory of a rank than its operands, and than 1 GiB;
/// empty if neither is so.
std::string obstacle_to_factor(const SolveArguments& arguments, const ProductShape& shape, int ranks) {
  constexpr Index always = Index{1} << 30;
  if (arguments.precondition != "none") return "--precondition is not for direct";
  if (arguments.product.device != "cpu") return "a factor is made in host memory";
  if (arguments.stored_as.place == MatrixPlace::disk && shape.rows < shape.cols) return columns_on_disks;
  const Index of_operands =
      (shape.rows * shape.cols + (shape.rows + shape.cols) * shape.nrhs) * size_of(shape.type) / ranks;
  const Index of_factor = factor_bytes(shape.rows, shape.cols, shape.type, shape.nrhs, ranks).while_made;
  if (of_factor > std::max(always, of_operands))
    return fmt::format("a factor would take {} of a rank", bytes_text(of_factor));
  return {};
}

/// Why an A with fewer rows than columns has no factor of its columns by this algorithm; empty if it has one.
/// That of products alone counts too many singular values as 0, so that direct may not solve.
std::string obstacle_to_columns(const ProductShape& shape, Algorithm algorithm) {
  if (shape.rows >= shape.cols || algorithm == Algorithm::stationary_a || algorithm == Algorithm::block)
    return {};
  return fmt::format("{} gives no columns of A to make one of", name_of(algorithm));
}

/// Why a factor pays off: it costs at most as much as the few iterations that any solve needs, with Aᴴb and a
/// verdict. Empty if it does not.
std::string reason_for_factor(const SolverSeconds& of_cgls, double direct) {
  constexpr double few_iterations = 3, beside = 1.5;
  if (direct > (few_iterations + beside) * of_cgls.iteration) return {};
  return fmt::format(
      "the model predicts {:.2g} s for a factor with its products, and {:.2g} s for an iteration of cgls",
      direct, of_cgls.iteration);
}

/// The solver that iterates.
ChosenSolver choose_iterations(const SolveArguments& arguments, const ProductShape& shape,
                               const std::optional<SolverSeconds>& single,
                               const std::optional<SolverSeconds>& block) {
  const Index batch = arguments.options.batch, at_once = batch > 0 ? std::min(batch, shape.nrhs) : shape.nrhs;
  if (std::string obstacle = obstacle_to_block(arguments, shape, at_once); !obstacle.empty())
    return {Solver::cgls, std::move(obstacle)};
  std::string why = fmt::format("{} right-hand sides can share a space", at_once);
  if (block && single)
    why += fmt::format("; the model predicts {:.2g} s for an iteration, and {:.2g} s for one of cgls",
                       block->iteration, single->iteration);
  return {Solver::block_cgls, std::move(why)};
}

}  // namespace

ChosenSolver choose_solver(const SolveTask& task, int ranks,
                           const std::function<std::optional<SolverSeconds>(Solver)>& seconds) {
  const SolveArguments& arguments = task.arguments;
  const CheckpointOptions& checkpoint = arguments.options.checkpoint;
  for (const Solver solver : {Solver::cgls, Solver::block_cgls, Solver::direct})
    if (saved_fact(task.saved, "--solver") == name_of(solver)) return {solver, "the run that goes on has it"};
  if (std::string need = need_of_cgls(arguments); !need.empty()) return {Solver::cgls, std::move(need)};
  const std::optional<SolverSeconds> single = seconds(Solver::cgls), block = seconds(Solver::block_cgls),
                                     factored = seconds(Solver::direct);
  ChosenSolver chosen = choose_iterations(arguments, task.shape, single, block);
  const auto without_factor = [&chosen](const std::string& obstacle) {
    chosen.why += fmt::format("; no factor will take its place: {}", obstacle);
    return chosen;
  };
  if (!single || !factored) return without_factor("no model predicts its time");
  if (const std::string obstacle = obstacle_to_factor(arguments, task.shape, ranks); !obstacle.empty())
    return without_factor(obstacle);
  if (const std::string obstacle = obstacle_to_columns(task.shape, factored->algorithm); !obstacle.empty())
    return without_factor(obstacle);
  if (std::string reason = reason_for_factor(*single, factored->direct); !reason.empty())
    return {Solver::direct, std::move(reason)};
  if (!checkpoint.directory.empty() || !checkpoint.restart.empty())
    return without_factor("a checkpoint belongs to one solver");
  const SolverSeconds& of_first = *(chosen.solver == Solver::cgls ? single : block);
  if (const std::string obstacle = obstacle_to_columns(task.shape, of_first.algorithm); !obstacle.empty())
    return without_factor(obstacle);
  chosen.patience = of_first.direct;
  chosen.why +=
      fmt::format("; if that takes {:.2g} s, as a factor would, direct takes its place", *chosen.patience);
  return chosen;
}

}  // namespace gridlops::program
