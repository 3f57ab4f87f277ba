// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/inversion.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/column_blocks.hpp"
#include "solve/methods/methods.hpp"

namespace gridlops {

namespace {

void check_epsilon(double epsilon) {
  require<UsageError>(epsilon >= 0 && std::isfinite(epsilon), "a regulariser's epsilon is ", epsilon,
                      "; it must be a finite number ≥ 0");
}

template <Scalar T>
void check_operands(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                    const std::vector<Regularizer<T>>& regularizers) {
  A.require_operands(X, B);
  for (std::size_t k = 0; k < regularizers.size(); ++k) {
    const Regularizer<T>& term = regularizers[k];
    const std::string name = message("regulariser ", k);
    check_epsilon(term.epsilon);
    if (term.data != nullptr) {
      term.R->require_operands(X, *term.data, name);
    } else {
      term.R->domain().require_contains(X, name + ": the model");
    }
  }
}

template <Scalar T>
OperatorPtr<T> normal_operator(const OperatorPtr<T>& A) {
  return product(adjoint(A), A);
}

/// The operator that maps R's range to a space that can be stacked below `above`.
template <Scalar T>
OperatorPtr<T> into_stack(const Space& above, const Space& range) {
  if (range.rows.axis == above.rows.axis) return identity<T>(range);
  return identity<T>(moved_to(above.rows.axis, range), range);
}

/// Lets all ranks agree on an inversion before it begins; the agreement includes the solver.
template <Scalar T>
void begin_inversion(const char* name, const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                     const SolveOptions& options, const std::function<void(Agreement&)>& check) {
  const auto begin = [&](Agreement& agreement) {
    describe_problem(agreement, B, X, options);
    check(agreement);
  };
  agree(B.grid(), name, begin);
}

/// The number of occurrences of each regulariser, and its weight.
template <Scalar T>
void describe_regularizers(Agreement& agreement, const OperatorPtr<T>& weight,
                           const std::vector<Regularizer<T>>& regularizers) {
  agreement.on("the weight", weight == nullptr ? "none" : "given");
  for (const Regularizer<T>& term : regularizers)
    agreement.on("a regulariser", "epsilon ", term.epsilon, term.data == nullptr ? "" : ", with data");
}

void require_least_squares(Solver solver) {
  const std::vector<Solver> fitting = solvers_with(Feature::column_scaling);
  require<UsageError>(std::find(fitting.begin(), fitting.end(), solver) != fitting.end(),
                      "an inversion by least squares does not go by ", name_of(solver), "; there are ",
                      names_of(fitting));
}

/// Sets xⱼ ← 0 for every j that the test is true for.
template <Scalar T, class Test>
bool clear_columns(DistMatrix<T>& X, const Test& test) {
  bool found = false;
  if (!X.grid()->is_member()) return found;
  for (Index j = 0; j < X.cols(); ++j) {
    if (!test(at(j))) continue;
    found = true;
    X.grid()->backend()->template kernels<T>().fill(T(0), column_block(X, j));
  }
  return found;
}

/// Leaves out guesses that are so far off that nothing of b is left in their residuals but rounding, as
/// solves without a preconditioner do (collective over the grid). True if there is one.
template <Scalar T>
bool leave_out_far_guesses(const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& residual,
                           DistMatrix<T>& X) {
  constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  const std::vector<double> data_norms = column_norms(B), norms = column_norms(residual);
  return clear_columns(X, [&](std::size_t j) { return epsilon * norms[j] >= data_norms[j]; });
}

/// If nothing of bⱼ is in the range of A, as the reference says, xⱼ = 0 is a solution, and takes the place of
/// what a guess has left: no tolerance relative to 0 could be met (collective over the grid).
template <Scalar T>
void take_exact_zeros(const ConstDistMatrix<T>& B, SolveReport& report, DistMatrix<T>& X) {
  const std::vector<double> data_norms = column_norms(B);
  clear_columns(X, [&](std::size_t j) {
    ColumnReport& column = report.columns[j];
    if (column.reference_norm != 0 || column.reason == StopReason::non_finite) return false;
    column.reason = StopReason::converged;
    column.tested_norm = column.normal_residual_norm = column.relative_normal_residual_norm = 0;
    column.residual_norm = data_norms[j];
    return true;
  });
}

bool has_reason(const SolveReport& report, StopReason reason) {
  return std::any_of(report.columns.begin(), report.columns.end(),
                     [reason](const ColumnReport& column) { return column.reason == reason; });
}

Index iterations_of_all(const SolveReport& report) {
  Index sum = 0;
  for (const ColumnReport& column : report.columns) sum += column.iterations;
  return sum;
}

/// Appends the report of a further solve of the same columns that started from the last x.
void append(SolveReport& report, const SolveReport& more) {
  for (IterationRecord record : more.history) {
    record.iteration += report.iterations;
    report.history.push_back(std::move(record));
  }
  report.alarms.insert(report.alarms.end(), more.alarms.begin(), more.alarms.end());
  report.guard_products += more.guard_products;
  report.iterations = more.iterations;
  report.columns = more.columns;
}

/// Replaces norms in the report by those that were computed anew. data: ‖b‖.
void take_norms(const std::vector<double>& data, const std::vector<double>& residual,
                const std::vector<double>& normal, SolveReport& report) {
  for (std::size_t j = 0; j < report.columns.size(); ++j) {
    ColumnReport& column = report.columns[j];
    column.quadrature = 1;  // that of the solve was of other norms
    if (column.reason == StopReason::non_finite) continue;
    column.residual_norm = residual[j];
    column.normal_residual_norm = normal[j];
    column.relative_normal_residual_norm = data[j] > 0 ? normal[j] / data[j] : 0;
  }
}

/// AᴴWA + Σ εᵢ²RᵢᴴRᵢ + Σ εₖ²Nₖ.
template <Scalar T>
OperatorPtr<T> normal_equations(const OperatorPtr<T>& A, const NormalEquationsTerms<T>& terms) {
  OperatorPtr<T> normal = product(adjoint(A), terms.weight ? product(terms.weight, A) : A);
  for (const Regularizer<T>& term : terms.regularizers)
    normal = sum(normal, scale(to_scalar<T>(term.epsilon * term.epsilon), normal_operator(term.R)));
  for (const NormalRegularizer<T>& term : terms.normal_regularizers)
    normal = sum(normal, scale(to_scalar<T>(term.epsilon * term.epsilon), term.N));
  return normal;
}

/// AᴴW.
template <Scalar T>
OperatorPtr<T> into_right_hand_sides(const OperatorPtr<T>& A, const NormalEquationsTerms<T>& terms) {
  return terms.weight ? product(adjoint(A), terms.weight) : adjoint(A);
}

/// [W^½A; ε₁R₁; …], and right-hand sides [W^½B; ε₁d₁; …].
template <Scalar T>
class RegularizedSystem {
 public:
  RegularizedSystem(const OperatorPtr<T>& A, const RegularizedTerms<T>& terms)
      : terms_(terms), A_(stack(A, terms)) {}

  const LinearOperator<T>& A() const { return *A_; }

  /// Scratch memory for right_hand_sides() with these columns.
  Index scratch_bytes(const Partition& columns) const {
    Index most = terms_.weight ? terms_.weight->scratch_bytes(ProductKind::forward, columns) : 0;
    for (std::size_t k = 0; k < into_stack_.size(); ++k)
      if (terms_.regularizers[k].data != nullptr)
        most = std::max(most, into_stack_[k]->scratch_bytes(ProductKind::forward, columns));
    return most;
  }
  DistMatrix<T> right_hand_sides(const ConstDistMatrix<T>& B) const {
    DistMatrix<T> stacked = allocate_matrix<T>(B.grid(), A_->range().layout(B.layout().cols.partition)),
                  upper = stack_rows(ranges_, 0, stacked);
    if (terms_.weight) {
      terms_.weight->apply(T(1), B, T(0), upper);
    } else {
      copy(B, upper);
    }
    for (std::size_t k = 0; k < terms_.regularizers.size(); ++k) {
      DistMatrix<T> part = stack_rows(ranges_, k + 1, stacked);
      const Regularizer<T>& term = terms_.regularizers[k];
      if (term.data == nullptr) {
        part.set_zero();
      } else {
        into_stack_[k]->apply(to_scalar<T>(term.epsilon), *term.data, T(0), part);
      }
    }
    return stacked;
  }

 private:
  OperatorPtr<T> stack(const OperatorPtr<T>& A, const RegularizedTerms<T>& terms) {
    std::vector<OperatorPtr<T>> operators{terms.weight ? product(terms.weight, A) : A};
    ranges_.push_back(operators.front()->range());
    for (const Regularizer<T>& term : terms.regularizers) {
      into_stack_.push_back(into_stack<T>(ranges_.front(), term.R->range()));
      const bool in_place = into_stack_.back()->range() == term.R->range();
      operators.push_back(
          scale(to_scalar<T>(term.epsilon), in_place ? term.R : product(into_stack_.back(), term.R)));
      ranges_.push_back(operators.back()->range());
    }
    return vertical_stack(std::move(operators));
  }

  const RegularizedTerms<T>& terms_;
  std::vector<OperatorPtr<T>> into_stack_;
  std::vector<Space> ranges_;
  OperatorPtr<T> A_;
};

/// The bytes of this rank's part of this many vectors in a space.
template <Scalar T>
Index bytes_of_vectors(const Space& space, Index columns) {
  if (!space.grid->is_member()) return 0;
  return space.local_rows() * space.local_columns(space.layout(columns).cols.partition) * Index{sizeof(T)};
}

}  // namespace

template <Scalar T>
SolveReport normal_equations_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                       const NormalEquationsTerms<T>& terms, const SolveOptions& options) {
  begin_inversion("normal_equations_inversion", B, X, options, [&](Agreement& agreement) {
    describe_regularizers(agreement, terms.weight, terms.regularizers);
    for (const NormalRegularizer<T>& term : terms.normal_regularizers)
      agreement.on("a normal regulariser's epsilon", term.epsilon);
    check_operands(*A, B, X, terms.regularizers);
    for (const NormalRegularizer<T>& term : terms.normal_regularizers) check_epsilon(term.epsilon);
  });
  FailureScope failures;
  const OperatorPtr<T> normal = normal_equations(A, terms);
  DistMatrix<T> right_hand_sides = allocate_matrix<T>(X.grid(), X.layout());
  into_right_hand_sides(A, terms)->apply(T(1), B, T(0), right_hand_sides);
  for (const Regularizer<T>& term : terms.regularizers)
    if (term.data != nullptr)
      term.R->apply_adjoint(to_scalar<T>(term.epsilon * term.epsilon), *term.data, T(1), right_hand_sides);
  return cg(*normal, right_hand_sides, X, options);
}

template <Scalar T>
SolveBytes normal_equations_inversion_bytes(OperatorPtr<T> A, Index nrhs,
                                            const NormalEquationsTerms<T>& terms,
                                            const SolveOptions& options) {
  const OperatorPtr<T> system = normal_equations(A, terms);
  SolveBytes bytes = solve_bytes(Solver::cg, *system, nrhs, options);
  bytes.vectors += bytes_of_vectors<T>(A->domain(), nrhs);
  const Partition columns = A->range().layout(nrhs).cols.partition;
  const OperatorPtr<T> to_right = into_right_hand_sides(A, terms);
  bytes.products = std::max(bytes.products, to_right->scratch_bytes(ProductKind::forward, columns));
  for (const Regularizer<T>& term : terms.regularizers)
    if (term.data != nullptr)
      bytes.products = std::max(bytes.products, term.R->scratch_bytes(ProductKind::adjoint, columns));
  KeptBytes kept;
  system->add_kept_bytes(kept, columns);
  to_right->add_kept_bytes(kept, columns);
  bytes.operators = kept.total();
  return bytes;
}

template <Scalar T>
SolveReport regularized_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                  const RegularizedTerms<T>& terms, const SolveOptions& options) {
  begin_inversion("regularized_inversion", B, X, options, [&](Agreement& agreement) {
    describe_regularizers(agreement, terms.weight, terms.regularizers);
    agreement.on("the solver", name_of(terms.solver));
    check_operands(*A, B, X, terms.regularizers);
    require_least_squares(terms.solver);
  });
  FailureScope failures;
  const RegularizedSystem<T> system(A, terms);
  return solve(terms.solver, system.A(), system.right_hand_sides(B), X, options);
}

template <Scalar T>
SolveBytes regularized_inversion_bytes(OperatorPtr<T> A, Index nrhs, const RegularizedTerms<T>& terms,
                                       const SolveOptions& options) {
  const RegularizedSystem<T> system(A, terms);
  SolveBytes bytes = solve_bytes(terms.solver, system.A(), nrhs, options);
  bytes.vectors += bytes_of_vectors<T>(system.A().range(), nrhs);
  bytes.products = std::max(bytes.products, system.scratch_bytes(A->range().layout(nrhs).cols.partition));
  return bytes;
}

template <Scalar T>
SolveReport preconditioned_inversion(OperatorPtr<T> A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                                     const Preconditioning<T>& how, const SolveOptions& options) {
  begin_inversion("preconditioned_inversion", B, X, options, [&](Agreement& agreement) {
    agreement.on("the solver", name_of(how.solver)).on("what is damped", how.damps_x ? "x" : "z");
    A->require_operands(X, B);
    require_least_squares(how.solver);
    require<UsageError>(options.error == 0,
                        "a preconditioned inversion does not test errors: it solves for z; "
                        "error_bounds() has those of x afterwards");
    require<UsageError>(
        !how.damps_x || options.damp.is_one(),
        "a preconditioned inversion that damps x takes one damping for all columns, since it is "
        "part of the operator; leave the preconditioner out, or damp z");
    const double damp = how.damps_x ? options.damp.one_or(0) : 0;
    require<UsageError>(damp == 0 || std::isnormal(static_cast<Real<T>>(damp)), "the damping ", damp,
                        " is out of the range of ", name_of(scalar_type_of<T>),
                        ", and with a preconditioner it is part of the operator: leave the preconditioner "
                        "out, since then D may have any size, or multiply A, B and D by a constant");
  });
  const bool stacks = how.damps_x && options.damp.any();
  const double damp = stacks ? options.damp.values().front() : 0;
  const Partition& columns = X.layout().cols.partition;
  const OperatorPtr<T> full = stacks ? damped(A, damp) : A, preconditioned = product(full, how.P);
  FailureScope failures;
  // With a guess, Z is a correction of X₀, and the remaining problem has the right-hand side [B; 0] − [A;
  // D·I] X₀.
  const bool corrects = options.initial_guess;
  DistMatrix<T> Z = allocate_matrix<T>(X.grid(), how.P->domain().layout(columns)), data, residual;
  const auto load_data = [&](DistMatrix<T>& stacked) {  // [B; 0]
    if (stacked.rows() == 0) stacked = allocate_matrix<T>(B.grid(), full->range().layout(columns));
    stacked.set_zero();
    DistMatrix<T> upper = stack_rows({A->range()}, 0, stacked);
    copy(B, upper);
  };
  if (stacks || (how.damps_x && !corrects)) load_data(data);
  // [A; D·I] P rounds like AP, since D²‖x‖ is no larger than ‖A‖‖b − Ax‖ at the solution. The estimate may be
  // too small by half.
  constexpr int steps = 5;
  const double largest_norm =
      stacks ? 2 * estimate_norm(*product(A, how.P), steps) : std::numeric_limits<double>::infinity();
  SolveOptions for_z = options;
  for_z.initial_guess = false;
  for_z.sigma_min = 0;  // of A P nothing is known
  if (stacks) for_z.damp = 0;
  const auto solve_from_X = [&](const SolveReport* before) {
    const auto compute_residual = [&] {
      load_data(residual);
      full->apply(T(-1), X, T(1), residual);
    };
    if (corrects) compute_residual();
    if (corrects && before == nullptr && leave_out_far_guesses<T>(B, residual, X)) compute_residual();
    SolveReport report = solve_from<T>(
        how.solver, *preconditioned, stacks ? data : B, Z, for_z, {},
        {.residuals = corrects ? &residual : nullptr, .report = before, .largest_norm = largest_norm});
    how.P->apply(T(1), Z, T(corrects ? 1 : 0), X);
    return report;
  };
  SolveReport report = solve_from_X(nullptr);
  // Z may be so much longer than X₀ + P Z that the sum is not a solution. The loop then corrects again until
  // nothing is left to do, so the last verdicts are those of X itself. A damping of Z does not apply to the
  // sum.
  for_z.observers.clear();
  for_z.checkpoint = {};
  const bool is_damped = options.damp.any();
  const bool may_correct = corrects && (how.damps_x || !is_damped);
  for (bool has_moved = report.iterations > 0;
       may_correct && has_moved && !has_reason(report, StopReason::user_stop);) {
    const Index before = iterations_of_all(report);
    append(report, solve_from_X(&report));
    has_moved = iterations_of_all(report) > before;
  }
  if (corrects) take_exact_zeros(B, report, X);
  if (how.damps_x) {
    Z = DistMatrix<T>();
    DistMatrix<T> gradient = allocate_matrix<T>(X.grid(), X.layout());
    DistMatrix<T>& r = corrects ? residual : data;  // [B − A X; −D X]; D² may leave the range of T
    load_data(r);
    full->apply(T(-1), X, T(1), r);
    full->apply_adjoint(T(1), r, T(0), gradient);
    take_norms(column_norms(B), column_norms<T>(stack_rows({A->range()}, 0, std::as_const(r))),
               column_norms(gradient), report);
  } else if (X.grid()->is_member()) {
    failures.settle(X.grid()->comm());
  }
  return report;
}

namespace {

/// diag(1/norms), with 1 where that is not in the range of T.
template <Scalar T>
OperatorPtr<T> inverse_diagonal(const std::vector<double>& norms, const Space& domain) {
  DistMatrix<T> factors = allocate_matrix<T>(domain.grid, {domain.rows, Cut::uncut(1)});
  factors.fill([&norms](Index i, Index) {
    const double norm = norms[at(i)];
    const bool is_in_range = std::isfinite(norm) && std::isnormal(static_cast<Real<T>>(1 / norm));
    return to_scalar<T>(norm > 0 && is_in_range ? 1 / norm : 1);
  });
  return diagonal(std::move(factors), domain.columns);
}

}  // namespace

template <Scalar T>
OperatorPtr<T> column_scaling(const ConstDistMatrix<T>& matrix, const Space& domain) {
  require<ShapeError>(matrix.grid() == domain.grid && matrix.cols() == domain.dimension(), "a matrix of ",
                      matrix.cols(), " columns does not scale a domain of dimension ", domain.dimension(),
                      ": they must be equal, and on the same grid");
  return inverse_diagonal<T>(column_norms(matrix), domain);
}

template <Scalar T>
OperatorPtr<T> column_scaling(const LinearOperator<T>& A) {
  return inverse_diagonal<T>(column_norms(A), A.domain());
}

#define GRIDLOPS_INSTANTIATE(T)                                                                              \
  template SolveReport normal_equations_inversion(OperatorPtr<T>, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                                                  const NormalEquationsTerms<T>&, const SolveOptions&);      \
  template SolveReport regularized_inversion(OperatorPtr<T>, const ConstDistMatrix<T>&, DistMatrix<T>&,      \
                                             const RegularizedTerms<T>&, const SolveOptions&);               \
  template SolveReport preconditioned_inversion(OperatorPtr<T>, const ConstDistMatrix<T>&, DistMatrix<T>&,   \
                                                const Preconditioning<T>&, const SolveOptions&);             \
  template SolveBytes normal_equations_inversion_bytes(OperatorPtr<T>, Index,                                \
                                                       const NormalEquationsTerms<T>&, const SolveOptions&); \
  template SolveBytes regularized_inversion_bytes(OperatorPtr<T>, Index, const RegularizedTerms<T>&,         \
                                                  const SolveOptions&);                                      \
  template OperatorPtr<T> column_scaling(const ConstDistMatrix<T>&, const Space&);                           \
  template OperatorPtr<T> column_scaling(const LinearOperator<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
