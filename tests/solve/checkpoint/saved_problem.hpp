// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "gridlops/solve/sparse_solver.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

// Problems whose solvers are interrupted, and go on from what they saved.

namespace gridlops::testing {

inline constexpr Index m = 41, n = 23, nrhs = 7;

template <Scalar T>
SolveReport sparse(bool momentum, const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options) {
  SolveOptions own = options;
  own.lambda = 0.05;
  own.monotone = momentum;
  return momentum ? fista(A, B, X, own) : ista(A, B, X, own);
}
template <Scalar T>
SolveReport ista_alike(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options) {
  return sparse(false, A, B, X, options);
}
template <Scalar T>
SolveReport fista_alike(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                        const SolveOptions& options) {
  return sparse(true, A, B, X, options);
}

/// NCCL promises no order of its sums. Bits repeat where sums are asked for by rank.
inline bool needs_order() { return world().transport() == "nccl"; }

template <Scalar T>
struct Case {
  const char* name;
  SolverFunction<T> solver;
  Algorithm algorithm = Algorithm::stationary_a;
  double damp = 0;
  bool guess = false;
  Storage storage = Storage::columns;
  std::vector<double> damps{};
};

inline const std::vector<double> some_damps{0, 1, 0.1, 0.01, 10, 0, 0.3};

template <Scalar T>
std::vector<Case<T>> all_cases() {
  return {
      {"cgls", cgls<T>},
      {"cgls with summa, damped", cgls<T>, Algorithm::summa, 0.2},
      {"cgls with block, guess", cgls<T>, Algorithm::block, 0, true},
      {"one_pass_cgls", one_pass_cgls<T>, Algorithm::stationary_a, 0, false, Storage::packed},
      {"one_pass_cgls damped, guess", one_pass_cgls<T>, Algorithm::stationary_a, 0.2, true, Storage::packed},
      {"lsqr", lsqr<T>},
      {"lsqr damped, guess", lsqr<T>, Algorithm::stationary_a, 0.2, true},
      {"lsmr with summa, damped", lsmr<T>, Algorithm::summa, 0.2},
      {"block_cgls", block_cgls<T>},
      {"block_cgls damped, guess", block_cgls<T>, Algorithm::stationary_a, 0.2, true},
      {"ista", ista_alike<T>},
      {"fista with summa", fista_alike<T>, Algorithm::summa},
      {"cgls with summa, damps", cgls<T>, Algorithm::summa, 0, false, Storage::columns, some_damps},
      {"lsqr with damps", lsqr<T>, Algorithm::stationary_a, 0, false, Storage::columns, some_damps},
      {"lsmr with damps", lsmr<T>, Algorithm::stationary_a, 0, false, Storage::columns, some_damps}};
}

/// Column 1 takes no iteration, and column 2 takes one of most solvers. So they leave one after the other,
/// and the others come to lie in another order than if both had left at once.
template <Scalar T>
struct Problem {
  Problem(const GridPtr& on, const Case<T>& what, double condition)
      : grid(on),
        matrix(m, n, geometric(n, condition)),
        A(dense_operator<T>(on, what.algorithm, matrix,
                            {.column_stable = needs_order(), .storage = what.storage})),
        how(what) {
    if (what.guess) guess = random_elements<T>(9);
  }

  Solution<T> solve_with(SolveOptions options) const {
    options.damp = how.damp;
    if (!how.damps.empty()) options.damp = how.damps;
    options.column_stable = needs_order();
    return solve<T>(how.solver, *A, nrhs, b, options, guess);
  }
  /// Ends after iteration `last`, with its state in the folder.
  void suspend(SolveOptions options, const std::string& folder, Index last, int asking) const {
    Index iteration = 0;
    options.checkpoint.directory = folder;
    options.checkpoint.requested = [this, &iteration, last, asking] {
      return ++iteration >= last && grid->comm().rank() == asking;
    };
    if (!grid->is_member()) {
      solve_with(options);
    } else {
      REQUIRE_THROWS_AS(solve_with(options), Suspended);
      CHECK(iteration == last);
    }
  }

  GridPtr grid;
  KnownSpectrum<T> matrix;
  OperatorPtr<T> A;
  Case<T> how;
  Element<T> guess;
  Element<T> b = [this](Index i, Index j) {
    return j == 2 ? matrix.left(i, 3) : j == 1 ? T(0) : counter_random<T>(4, i, j);
  };
};

template <Scalar T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

}  // namespace gridlops::testing
