// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "gridlops/solve/weights.hpp"
#include "measure/report.hpp"

namespace gridlops::program {

/// The function to minimise: ‖A x − b‖² + D²‖x‖², or ½‖A x − b‖² + λP(x) with the penalty of a threshold.
struct CostFunction {
  PerColumn damp = 0;
  std::vector<double> lambdas{};  ///< of each column; empty: there is no penalty
  Threshold threshold = Threshold::soft;
  bool is_quadratic_form = false;  ///< instead xᴴ(A + D²I)x/2 − Re bᴴx, which norms do not give
  bool is_misfit = false;          ///< instead that of residuals, which norms do not give either
};

/// A bound of an error, relative to the norm of its x; not finite if nothing bounds it.
inline double relative_bound(double bound, double norm) { return bound == 0 ? 0 : bound / norm; }

/// The largest bound of an error, relative to the norm of its x; infinite if nothing bounds one.
inline double largest_relative(const std::vector<double>& bounds, const std::vector<double>& norms) {
  double largest = 0;
  for (std::size_t j = 0; j < bounds.size(); ++j) {
    if (!std::isfinite(relative_bound(bounds[j], norms[j]))) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, relative_bound(bounds[j], norms[j]));
  }
  return largest;
}

/// The least λ of each column with which the first step from x = 0 ends there (collective over the grid): g =
/// ‖Aᴴb‖∞ for the soft threshold, with which x = 0 is then the solution, αg²/2 for the hard and 8(αg³/54)^½
/// for the half one, where α is the step. In this unit λ does not depend on the size of A and b. X: scratch
/// memory in A's domain. weights: of B, or null; the b of these formulas is then w²∘b, and α is shorter.
template <Scalar T>
std::vector<double> least_lambdas_of_zero(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                          const ConstDistMatrix<T>* weights, const SolveOptions& options,
                                          DistMatrix<T>& X) {
  std::vector<WeightRange> ranges(static_cast<std::size_t>(X.cols()));
  if (weights == nullptr) {
    A.apply_adjoint(T(1), B, T(0), X);
  } else {
    DistMatrix<T> weighted = allocate_matrix<T>(B.grid(), B.layout());
    copy(B, weighted);
    for (int twice = 0; twice < 2; ++twice) ranges = weigh(*weights, weighted);
    A.apply_adjoint(T(1), weighted, T(0), X);
  }
  std::vector<double> lambdas = column_norms(X, std::numeric_limits<double>::infinity());
  if (options.threshold == Threshold::soft) return lambdas;
  const double root_of_step =
      options.step ? std::sqrt(*options.step) : 1 / ((options.backtracking ? 1 : 1.02) * estimate_norm(A));
  for (std::size_t j = 0; j < lambdas.size(); ++j) {
    double& g = lambdas[j];
    const double largest = options.step || ranges[j].largest == 0 ? 1 : ranges[j].largest,
                 of_step = root_of_step / largest * g;  // √α times as long as the step's x
    g = options.threshold == Threshold::hard ? of_step * of_step / 2
                                             : 8 / std::sqrt(54.0) * of_step * std::sqrt(g);
  }
  return lambdas;
}

/// The report's numbers for each column of the solution, besides the solver's (collective over the grid).
template <Scalar T>
std::vector<ColumnFigure> column_figures(const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                                         const SolveReport& report, const CostFunction& cost) {
  const std::vector<double> rhs = column_norms(B), x = column_norms(X);
  std::vector<ColumnFigure> figures{{"rhs_norm", rhs}, {"x_norm", x}};
  if (cost.is_quadratic_form || cost.is_misfit) return figures;
  std::vector<double> values;
  for (std::size_t j = 0; j < x.size(); ++j) {
    const double misfit = report.columns[j].residual_norm * report.columns[j].residual_norm,
                 damped = cost.damp[static_cast<Index>(j)] * x[j];
    values.push_back(cost.lambdas.empty() ? misfit + damped * damped : 0.5 * misfit);
  }
  if (!cost.lambdas.empty()) {
    const ColumnScalars penalties = value(*threshold_penalty<T>(cost.threshold), X);
    for (std::size_t j = 0; j < x.size(); ++j)
      values[j] += cost.lambdas[j] * penalties[static_cast<Index>(j)];
    figures.emplace_back("lambda", cost.lambdas);
    figures.emplace_back("nonzeros", column_norms(X, 0));
  }
  figures.emplace_back("objective", values);
  return figures;
}

}  // namespace gridlops::program
