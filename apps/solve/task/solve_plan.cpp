// SPDX-License-Identifier: BSD-3-Clause
#include "solve/task/solve_plan.hpp"

#include <algorithm>

#include "command_line/console.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/certify.hpp"
#include "solve/matrix_of_task.hpp"

namespace gridlops::program {

namespace {

using BytesOfRank = std::function<Index(int row, int col)>;

/// Of the space of all right-hand sides and dampings.
template <Scalar T>
BytesOfRank space_bytes(const SolveTask& task) {
  const SweepArguments& sweep = task.arguments.sweep;
  const OperatorPtr<T> op = make_operator(task, planned_product<T>(task));
  const Index all = std::min(op->rows(), op->cols());
  const Index vectors = sweep.space_dimension > 0 ? std::min(sweep.space_dimension, all) : all;
  const Index columns = task.shape.nrhs + (sweep.rule == DampingRule::gcv ? 1 : 0);
  return [op, columns, vectors](int row, int col) {
    return solution_space_bytes(*op, columns, vectors, row, col);
  };
}

/// Of a sketch for --sigma-min.
template <Scalar T>
BytesOfRank sketch_bytes(const SolveTask& task) {
  return [product = planned_product<T>(task)](int row, int col) {
    return probable_sigma_min_bytes(*product, row, col);
  };
}

/// Of the norms by which columns of a matrix on disks are scaled.
template <Scalar T>
BytesOfRank norms_bytes(const SolveTask& task, const Layout& layout) {
  return [layout, grid = task.grid(), cols = task.shape.cols](int row, int col) {
    return column_norms_bytes<T>(cols, layout.row_range(*grid, row, col).size,
                                 layout.col_range(*grid, row, col).size);
  };
}

}  // namespace

PlannedSolve plan_of(const SolveTask& task) {
  const SolveArguments& arguments = task.arguments;
  PlannedSolve plan =
      plan_solve(task.A, task.kept(), task.iteration(), task.shape, arguments.options.batch, task.grid());
  plan.damped = arguments.is_damped();
  plan.initial_guess = task.X0.has_value() || task.sweep.in_space;
  plan.scaled = is_scaled(task);
  plan.variances = !arguments.variances.empty();
  plan.guarded = arguments.options.guard > 0;
  plan.own_damps = task.sweep || plan.variances;
  if (arguments.sweep.by_factor()) plan.curves = std::ssize(task.sweep.damps);
  if (task.sweep.leaves_rest) plan.rest = std::max(task.B.cols, std::ssize(task.sweep.damps));
  if (arguments.probable_sigma_min)
    plan.sketch_columns = std::min(sketch_group, sketch_rows(task.shape.cols));
  with_scalar_type(task.shape.type, [&]<Scalar T>() {
    if (plan.scaled && task.is_on_disk()) plan.norms_bytes = norms_bytes<T>(task, plan.matrix);
    if (task.sweep.in_space) plan.space_bytes = space_bytes<T>(task);
    if (arguments.probable_sigma_min) plan.sketch_bytes = sketch_bytes<T>(task);
  });
  return plan;
}

void tell_plan(Communicator& world, const SolveTask& task) {
  const bool talks = world.rank() == 0;
  if (!task.arguments.certify.empty()) {
    const std::string text = with_scalar_type(task.shape.type, [&]<Scalar T>() {
      return certified_plan_text(world, task, certified_bytes(task, *planned_product<T>(task)));
    });
    if (talks) print(text);
  } else if (talks) {
    print(plan_text(plan_of(task)));
  }
  if (talks && task.is_on_disk()) print(disk_text(task));
}

}  // namespace gridlops::program
