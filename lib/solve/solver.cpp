// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/solver.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/instantiate.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "solve/batches.hpp"
#include "solve/methods/methods.hpp"

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

Index batch_count(const Partition& columns, Index batch) {
  return static_cast<Index>(column_batches(columns, batch).size());
}

Index largest_batch(const Partition& columns, Index batch) { return first_batch(columns, batch).total(); }

namespace {

template <Scalar T, std::size_t... k>
MethodPtr<T> make_any(const SolverCall<T>& call, std::index_sequence<k...>) {
  using Make = MethodPtr<T> (*)(const SolverCall<T>&);
  constexpr std::array<Make, sizeof...(k)> makers{make_method_of<static_cast<Solver>(k), T>...};
  return makers[static_cast<std::size_t>(call.solver)](call);
}

template <Scalar T>
void check_operands(const SolverRow& row, const SolverOperands<T>& operands, const ConstDistMatrix<T>& B,
                    const DistMatrix<T>& X) {
  const auto check = [&row](const char* operand, bool is_given, Feature feature, bool is_needed) {
    require<UsageError>(!is_given || row.has(feature), operand, " means nothing to ", row.name,
                        "; leave it out, or take another solver: ", names_of(solvers_with(feature)));
    require<UsageError>(is_given || !is_needed || !row.has(feature), row.name, " needs ", operand);
  };
  check("a preconditioner", operands.preconditioner != nullptr, Feature::preconditioner, true);
  check("a proximal operator", operands.penalty != nullptr, Feature::proximal_operator, true);
  check("a sparsifying operator", operands.sparsity != nullptr, Feature::threshold, false);
  check("a matrix of variances", operands.variances != nullptr, Feature::variances, false);
  check("a factor", operands.factor != nullptr, Feature::factor, false);
  check("a lower bound", operands.lower != nullptr, Feature::bounds, false);
  check("an upper bound", operands.upper != nullptr, Feature::bounds, false);
  for (const ConstDistMatrix<T>* const bound : {operands.lower, operands.upper}) {
    if (bound == nullptr) continue;
    require<ShapeError>(bound->grid() == X.grid() && bound->layout() == X.layout(), row.name, ": bounds are ",
                        bound->layout().describe(), ", but must lie as X does, which is ",
                        X.layout().describe());
    require_apart<T>(*bound, X, row.name, "its bounds and its solutions");
  }
  require<UsageError>(
      operands.weights == nullptr || !row.has(Feature::shared_space), row.name,
      ": columns with weights of their own have operators of their own, which share no space; "
      "leave the weights out, or take ",
      names_of(solvers_with(Feature::weights)));
  require<UsageError>(
      operands.weights == nullptr || !row.has(Feature::factor), row.name,
      ": columns with weights of their own have operators of their own, which share no factor; "
      "leave the weights out, or take ",
      names_of(solvers_with(Feature::weights)), "; for pcgls the factor of A is a preconditioner");
  check("weights", operands.weights != nullptr, Feature::weights, false);
  if (operands.penalty != nullptr) operands.penalty->require_any_columns(B.cols(), row.name);
  if (operands.weights != nullptr) {
    const ConstDistMatrix<T>& W = *operands.weights;
    require<ShapeError>(W.grid() == B.grid() && W.layout() == B.layout(), row.name, ": weights are ",
                        W.layout().describe(), ", but must lie as B does, which is ", B.layout().describe());
    require_apart<T>(W, X, row.name, "its weights and its solutions");
  }
  if (operands.variances == nullptr) return;
  const DistMatrix<T>& variances = *operands.variances;
  require<ShapeError>(variances.grid() == X.grid() && variances.layout() == X.layout(), row.name,
                      ": variances are ", variances.layout().describe(),
                      ", but must lie as X does, which is ", X.layout().describe());
  require_apart<T>(B, variances, row.name, "its right-hand sides and its variances");
  require_apart<T>(X, variances, row.name, "its solutions and its variances");
}

/// One value per column; empty on an idle rank.
std::vector<double> of_each_column(const PerColumn& values, const SolveReport& report) {
  std::vector<double> each;
  for (Index j = 0; j < std::ssize(report.columns); ++j) each.push_back(values[j]);
  return each;
}

}  // namespace

template <Scalar T>
MethodPtr<T> make_method(const SolverCall<T>& call) {
  return make_any(call, std::make_index_sequence<solver_rows.size()>());
}

template <Scalar T>
SolveReport solve_from(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                       DistMatrix<T>& X, const SolveOptions& options, const SolverOperands<T>& operands,
                       const SolvedBefore<T>& before) {
  const SolverRow& row = row_of(solver);
  SolveOptions chosen = options;
  const auto make = [&](Agreement& agreement) {
    agreement.on("the factor", operands.factor == nullptr ? "its own" : "one that is given")
        .on("variances", operands.variances == nullptr ? "none" : "asked for")
        .on("lower bounds", operands.lower == nullptr ? "none" : "given")
        .on("upper bounds", operands.upper == nullptr ? "none" : "given")
        .on("weights", operands.weights == nullptr ? "none" : "given");
    check_operands(row, operands, B, X);
    return make_method<T>({solver, A, chosen, operands});
  };
  const MethodPtr<T> method = begin_solve<T>(make, B, X, chosen);
  if (operands.variances != nullptr) operands.variances->set_zero();
  SolveReport report;
  if (operands.weights == nullptr || !B.grid()->is_member()) {
    report = solve_columns(*method, B, X, chosen, before);
  } else {
    DistMatrix<T> weighted = allocate_matrix<T>(B.grid(), B.layout());
    copy(B, weighted);
    const RowWeights<T> weights{*operands.weights, weigh(*operands.weights, weighted)};
    report = solve_columns<T>(*method, weighted, X, chosen, before, &weights);
  }
  report.weighted = operands.weights != nullptr;
  if (!row.has(Feature::penalty)) return report;
  report.step = chosen.step.value_or(0);
  report.lambdas = of_each_column(chosen.lambda, report);
  return report;
}

template <Scalar T>
SolveReport solve(Solver solver, const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                  const SolveOptions& options, const SolverOperands<T>& operands) {
  return solve_from<T>(solver, A, B, X, options, operands, {});
}

Index solver_workspace_bytes(const SolverMemory& of, int row, int col) {
  const ProcessGrid& grid = *of.range.grid;
  const Partition columns = of.range.layout(of.nrhs).cols.partition;
  const int part = grid.part_at(of.range.columns, row, col);
  const Index mine = columns.size(part), of_batch = first_batch(columns, of.batch).size(part);
  const auto rows_in = [&](const Space& space) { return space.layout(0).row_range(grid, row, col).size; };
  const auto method_elements = [&](const LinearOperator<double>& A, double damp) {
    SolveOptions options;
    options.damp = damp;
    options.one_pass = of.one_pass;
    options.guard = of.guarded ? 1 : 0;
    const OperatorPtr<double> M = identity<double>(A.domain());
    MethodState<double> state(A.domain());
    // This method is only described, never run. Its operands have no elements.
    SolverOperands<double> operands;
    if (row_of(of.solver).has(Feature::preconditioner)) operands.preconditioner = M.get();
    make_method<double>({of.solver, A, options, operands})->describe(state);
    // W∘B, and the weighted data of a product.
    const Index weighted = of.weighted ? rows_in(of.range) * (mine + of_batch) : 0;
    return state.elements_at(row, col, of_batch) + weighted;
  };
  const OperatorPtr<double> A = zero<double>(of.range, of.domain);
  if (!of.preconditioned) {
    const Index vectors = method_elements(*A, of.damped ? 1 : 0) * size_of(of.type);
    if (!row_of(of.solver).has(Feature::factor)) return vectors;
    const FactorBytes factor = (of.own_damps ? spectral_factor_bytes : factor_bytes)(
        A->rows(), A->cols(), of.type, largest_batch(columns, of.batch), grid.shape().size());
    return std::max(factor.while_made, factor.kept + vectors + factor.while_applied);
  }

  // The method works on [A; D·I] P. It needs memory for the stacked data, and with a guess for its first
  // residual. At the end a gradient takes the place of Z, and A P Z is computed through P Z. In one pass
  // there are also the two vectors that A gives to Pᴴ.
  const OperatorPtr<double> full = of.damped ? damped(A, 1) : A;
  const Index copies = of.damped && of.initial_guess ? 2 : 1;
  const Index data = copies * rows_in(full->range()) * mine, models = rows_in(of.domain) * mine,
              state = method_elements(*full, 0);
  const Index between = rows_in(of.domain) * of_batch * (of.one_pass ? 3 : 1);
  const Index besides = models + between + state;
  return (data + besides) * size_of(of.type);
}

template <Scalar T>
SolveBytes solve_bytes(Solver solver, const LinearOperator<T>& A, Index nrhs, const SolveOptions& options) {
  const ProcessGrid& grid = *A.range().grid;
  if (!grid.is_member()) return {};
  const SolverMemory memory{.solver = solver,
                            .range = A.range(),
                            .domain = A.domain(),
                            .type = scalar_type_of<T>,
                            .nrhs = nrhs,
                            .batch = options.batch,
                            .damped = options.damp.any(),
                            .initial_guess = options.initial_guess,
                            .one_pass = options.one_pass,
                            .guarded = options.guard > 0,
                            .own_damps = !options.damp.is_one()};
  const Partition columns = first_batch(A.range().layout(nrhs).cols.partition, options.batch);
  SolveBytes bytes{.operators = A.kept_bytes(columns),
                   .vectors = solver_workspace_bytes(memory, grid.my_row(), grid.my_col())};
  for (const ProductKind kind : {ProductKind::forward, ProductKind::adjoint, ProductKind::normal})
    if (kind != ProductKind::normal || options.one_pass)
      bytes.products = std::max(bytes.products, A.scratch_bytes(kind, columns));
  return bytes;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template SolveBytes solve_bytes(Solver, const LinearOperator<T>&, Index, const SolveOptions&);          \
  template MethodPtr<T> make_method(const SolverCall<T>&);                                                \
  template SolveReport solve_from(Solver, const LinearOperator<T>&, const ConstDistMatrix<T>&,            \
                                  DistMatrix<T>&, const SolveOptions&, const SolverOperands<T>&,          \
                                  const SolvedBefore<T>&);                                                \
  template SolveReport solve(Solver, const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                             const SolveOptions&, const SolverOperands<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
