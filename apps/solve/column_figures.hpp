// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/solver.hpp"
#include "measure/report.hpp"

namespace gridlops::program {

/// The function to minimise: ‖A x − b‖² + D²‖x‖², or ½‖A x − b‖² + λP(x) with the penalty of a threshold.
struct CostFunction {
  PerColumn damp = 0;
  std::vector<double> lambdas{};  ///< of each column; empty: there is no penalty
  Threshold threshold = Threshold::soft;
  bool is_quadratic_form = false;  ///< instead xᴴ(A + D²I)x/2 − Re bᴴx, which norms do not give
};

/// ‖Aᴴb‖∞ of each column: with a soft threshold, a λ at least this large makes x zero (collective over the
/// grid). X: scratch memory in A's domain.
template <Scalar T>
std::vector<double> largest_gradients(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                      DistMatrix<T>& X) {
  A.apply_adjoint(T(1), B, T(0), X);
  return column_norms(X, std::numeric_limits<double>::infinity());
}

/// The report's numbers for each column of the solution, besides the solver's (collective over the grid).
template <Scalar T>
std::vector<ColumnFigure> column_figures(const ConstDistMatrix<T>& B, const ConstDistMatrix<T>& X,
                                         const SolveReport& report, const CostFunction& cost) {
  const std::vector<double> rhs = column_norms(B), x = column_norms(X);
  std::vector<ColumnFigure> figures{{"rhs_norm", rhs}, {"x_norm", x}};
  if (cost.is_quadratic_form) return figures;
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
