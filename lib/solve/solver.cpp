// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solver.hpp"

#include <algorithm>

#include "gridlops/operator_algebra.hpp"
#include "solve/batches.hpp"
#include "solve/methods.hpp"

namespace gridlops {

const char* name_of(StopReason reason) {
  switch (reason) {
    case StopReason::converged:
      return "converged";
    case StopReason::stagnated:
      return "stagnated";
    case StopReason::iteration_limit:
      return "iteration_limit";
    case StopReason::condition_limit:
      return "condition_limit";
    case StopReason::user_stop:
      return "user_stop";
    case StopReason::breakdown:
      return "breakdown";
    case StopReason::non_finite:
      return "non_finite";
    case StopReason::corrupted:
      break;
  }
  return "corrupted";
}

bool is_solved(StopReason reason) {
  return reason == StopReason::converged || reason == StopReason::stagnated;
}

double default_tolerance(ScalarType type) {
  return type == ScalarType::f32 || type == ScalarType::c64 ? 1e-4 : 1e-8;
}

Index batch_count(const Partition& columns, Index batch) {
  return static_cast<Index>(column_batches(columns, batch).size());
}

Index largest_batch(const Partition& columns, Index batch) {
  return column_batches(columns, batch).front().sizes.total();
}

const char* name_of(Solver solver) {
  switch (solver) {
    case Solver::cgls:
      return "cgls";
    case Solver::cg:
      return "cg";
    case Solver::pcg:
      return "pcg";
    case Solver::lsqr:
      return "lsqr";
    case Solver::lsmr:
      return "lsmr";
    case Solver::block_cgls:
      return "block-cgls";
    case Solver::ista:
      return "ista";
    case Solver::fista:
      break;
  }
  return "fista";
}

namespace {

/// A method that is only described, and never run. Its operands have no elements.
MethodPtr<double> method_of(Solver solver, const LinearOperator<double>& A, const LinearOperator<double>& M,
                            const SolveOptions& options, SparseOptions& sparse_options) {
  switch (solver) {
    case Solver::cgls:
      return make_cgls(A, options);
    case Solver::cg:
      return make_cg<double>(A, nullptr);
    case Solver::pcg:
      return make_cg(A, &M);
    case Solver::lsqr:
      return make_lsqr<double>(A, options, nullptr);
    case Solver::lsmr:
      return make_lsmr(A, options);
    case Solver::block_cgls:
      return make_block_cgls(A, options.damp);
    case Solver::ista:
    case Solver::fista:
      break;
  }
  return make_ista<double>(name_of(solver), A, nullptr, threshold_penalty<double>(Threshold::soft),
                           sparse_options,
                           solver == Solver::fista ? Acceleration::fista : Acceleration::none);
}

}  // namespace

Index solver_workspace_bytes(const SolverMemory& of, int row, int col) {
  const ProcessGrid& grid = *of.range.grid;
  const Partition columns = of.range.layout(of.nrhs).cols.partition;
  const int part = grid.part_at(of.range.columns, row, col);
  const Index mine = columns.size(part),
              of_batch = column_batches(columns, of.batch).front().sizes.size(part);
  const auto method_elements = [&](const LinearOperator<double>& A, double damp) {
    SolveOptions options;
    options.damp = damp;
    options.one_pass = of.one_pass;
    options.guard = of.guarded ? 1 : 0;
    SparseOptions sparse_options;
    const OperatorPtr<double> M = identity<double>(A.domain());
    MethodState<double> state(A.domain());
    const MethodPtr<double> method = method_of(of.solver, A, *M, options, sparse_options);
    method->describe(state);
    return state.elements_at(row, col, of_batch);
  };
  const auto rows_in = [&](const Space& space) { return space.layout(0).row_range(grid, row, col).size; };
  const OperatorPtr<double> A = zero<double>(of.range, of.domain);
  if (!of.preconditioned) return method_elements(*A, of.damped ? 1 : 0) * size_of(of.type);

  // The method works on [A; D·I] P. Its data come in addition, and with a guess its first residual. At the
  // end a gradient takes the place of Z, and A P Z goes through P Z.
  const OperatorPtr<double> full = of.damped ? damped(A, 1) : A;
  const Index copies = of.damped && of.initial_guess ? 2 : 1;
  const Index data = copies * rows_in(full->range()) * mine, models = rows_in(of.domain) * mine,
              state = method_elements(*full, 0);
  const Index besides = models + rows_in(of.domain) * of_batch + state;
  return (data + besides) * size_of(of.type);
}

}  // namespace gridlops
