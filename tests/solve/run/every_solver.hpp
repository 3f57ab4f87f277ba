// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/refined_solver.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "support/problems.hpp"

// All that calls operators again and again, for tests of what happens to each when one rank fails.

namespace gridlops::testing {

/// A small problem, with all operands of the calls below.
struct Problem {
  using MakeOperator = std::function<OperatorPtr<double>(const Space&)>;

  /// With make_S, which makes an operator from a space to itself, A is M S. Without, A is M.
  explicit Problem(const GridPtr& grid, Algorithm algorithm = Algorithm::stationary_a,
                   const MakeOperator& make_S = {})
      : M(matrix(grid, algorithm, Storage::columns)),
        normal_M(normal(M)),
        S(make_S ? make_S(M->domain()) : normal_M),
        A(make_S ? product(M, S) : M),
        packed_A(make_S ? A : matrix(grid, algorithm, Storage::packed)),
        normal_A(make_S ? normal(A) : normal_M),
        B(filled(grid, A->range().layout(3), random_elements<double>(3))),
        Y(grid, A->range().layout(3)),
        R(filled(grid, A->domain().layout(3), random_elements<double>(4))),
        X(grid, A->domain().layout(3)),
        variances(grid, A->domain().layout(3)) {
    set_guess();
  }

  void set_guess() { X.fill(random_elements<double>(5)); }

  OperatorPtr<double> M, normal_M, S, A, packed_A, normal_A;
  DistMatrix<double> B, Y, R, X, variances;

 private:
  static OperatorPtr<double> matrix(const GridPtr& grid, Algorithm algorithm, Storage storage) {
    return dense_operator<double>(grid, algorithm, 23, 11, random_elements<double>(1), {.storage = storage});
  }
  /// AᴴA + I.
  static OperatorPtr<double> normal(const OperatorPtr<double>& A) {
    return sum(product(adjoint(A), A), identity<double>(A->domain()));
  }
};

/// Something that a problem is given to, and its name.
template <class... Options>
using Calls = std::vector<std::pair<const char*, std::function<void(Problem&, const Options&...)>>>;

/// The iterations after which a solver has solved the problem above as accurately as rounding allows, or at
/// least this many.
inline Index iterations_of(std::string_view solver, Index at_least) {
  return solver == name_of(Solver::direct) ? 1 : at_least;
}

/// Every solver of the table.
inline const Calls<SolveOptions>& solver_calls() {
  static const Calls<SolveOptions> calls = [] {
    Calls<SolveOptions> all{
        {"one-pass cgls",
         [](Problem& p, const SolveOptions& o) { one_pass_cgls<double>(*p.packed_A, p.B, p.X, o); }},
        {"lsqr with variances",
         [](Problem& p, const SolveOptions& o) { lsqr(*p.A, p.B, p.X, p.variances, o); }}};
    for (const SolverRow& row : solver_rows)
      all.emplace_back(row.name, [row](Problem& p, SolveOptions o) {
        if (row.has(Feature::penalty)) o.lambda = 0.01;
        if (!row.has(Feature::damping)) o.damp = 0;
        const bool preconditioned = row.has(Feature::preconditioner),
                   squared = row.problem == ProblemKind::hermitian;
        SolverOperands<double> operands;
        if (preconditioned) operands.preconditioner = p.S.get();
        if (row.has(Feature::proximal_operator)) operands.penalty = box<double>(0, 1);
        const OperatorPtr<double>&plain = preconditioned ? p.M : p.A,
              &normal = preconditioned ? p.normal_M : p.normal_A;
        solve(row.solver, squared ? *normal : *plain, squared ? p.R : p.B, p.X, o, operands);
      });
    return all;
  }();
  return calls;
}

/// Solvers with other operands, and inversions.
inline const Calls<SolveOptions>& inversion_calls() {
  static const Calls<SolveOptions> calls{
      {"fista with a sparsifying operator",
       [](Problem& p, SolveOptions o) {
         o.lambda = 0.01;
         fista(*p.M, *p.S, p.B, p.X, o);
       }},
      {"admm",
       [](Problem& p, const SolveOptions& o) {
         AdmmOptions options;
         options.common = o;
         options.inner_iterations = 3;
         admm(p.M, p.S, threshold_penalty<double>(Threshold::soft, 0.1), p.B, p.X, options);
       }},
      {"primal-dual",
       [](Problem& p, const SolveOptions& o) {
         PrimalDualOptions options;
         options.common = o;
         primal_dual(p.M, quadratic<double>(1), threshold_penalty<double>(Threshold::soft, 0.1), p.B, p.X,
                     options);
       }},
      {"refined",
       [](Problem& p, const SolveOptions& o) {
         RefinedOptions options;
         options.common = o;
         options.inner_iterations = 3;
         solve_refined(*p.A, *p.M, p.B, p.X, options);
       }},
      {"normal equations",
       [](Problem& p, const SolveOptions& o) {
         NormalEquationsTerms<double> terms;
         terms.regularizers.push_back({p.S, 1.0, &p.R});
         normal_equations_inversion(p.A, p.B, p.X, terms, o);
       }},
      {"regularised inversion",
       [](Problem& p, const SolveOptions& o) {
         RegularizedTerms<double> terms;
         terms.regularizers.push_back({p.S, 1.0, &p.R});
         regularized_inversion(p.M, p.B, p.X, terms, o);
       }},
      {"preconditioned inversion",
       [](Problem& p, const SolveOptions& o) {
         preconditioned_inversion<double>(p.M, p.B, p.X, {.P = p.S}, o);
       }},
      {"damped preconditioned inversion from a guess",
       [](Problem& p, SolveOptions o) {
         o.damp = 0.5;
         o.initial_guess = true;
         preconditioned_inversion<double>(p.M, p.B, p.X, {.P = p.S, .damps_x = true}, o);
       }},
  };
  return calls;
}

inline const Calls<>& estimate_calls() {
  static const Calls<> calls{
      {"estimate_norm", [](Problem& p) { estimate_norm(*p.A, 5); }},
      {"power_iteration", [](Problem& p) { power_iteration(*p.normal_A, 5); }},
      {"lanczos_extremes", [](Problem& p) { lanczos_extremes(*p.normal_A, 5); }},
      {"dot_test", [](Problem& p) { dot_test(*p.A, 2); }},
  };
  return calls;
}

inline SolveOptions at_most(Index iterations) {
  SolveOptions options;
  options.max_iterations = iterations;
  return options;
}

}  // namespace gridlops::testing
