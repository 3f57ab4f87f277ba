// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "solve/run/verdict.hpp"

namespace gridlops {

namespace {

void require_norm(const char* name, double value) {
  require<UsageError>(!(value < 0), "error_bounds: ", name, " is ", value, "; it must not be negative");
}

void require_finite(const char* name, double value) {
  require<UsageError>(value >= 0 && std::isfinite(value), "error_bounds: ", name, " is ", value,
                      "; it must be a finite number ≥ 0");
}

}  // namespace

void require_usable(const ErrorBoundOptions& options, Index rows, Index cols) {
  for (const double damp : options.damp.values()) require_finite("a damping", damp);
  require_finite("sigma_min", options.sigma_min);
  require_norm("the norm of A", options.frobenius_norm);
  require_norm("the norm of the difference", options.difference_norm);
  require<UsageError>(options.sigma_min == 0 || rows >= cols, "error_bounds: sigma_min is ",
                      options.sigma_min, ", but a matrix of ", rows, " x ", cols, " takes some models to 0");
  require_possible(options.sigma_min, options.frobenius_norm, rows, cols);
}

// The squares of all singular values have the sum ‖A‖_F².
void require_possible(double sigma_min, double frobenius_norm, Index rows, Index cols) {
  if (frobenius_norm == 0) return;  // idle ranks do not know it
  constexpr double of_sums = 1e-8;  // orders of summation
  const double most = frobenius_norm / std::sqrt(static_cast<double>(std::min(rows, cols)));
  require<UsageError>(!(sigma_min > (1 + of_sums) * most), "sigma_min is ", sigma_min,
                      ", but the smallest singular value of a matrix of ", rows, " x ", cols,
                      " whose Frobenius norm is ", frobenius_norm, " is at most ", most,
                      ": a bound of errors from it would be false; give a smaller one");
}

template <Scalar T>
std::vector<double> error_bounds(const SolveReport& report, const ConstDistMatrix<T>& B,
                                 const ConstDistMatrix<T>& X, const ErrorBoundOptions& options) {
  const std::size_t columns = at(X.cols());
  const bool is_member = X.grid()->is_member();
  agree(X.grid(), "error_bounds", [&](Agreement& agreement) {
    describe_matrix(agreement, "B", B);
    describe_matrix(agreement, "X", X);
    agreement.on("sigma_min", options.sigma_min)
        .on("the norm of A", options.frobenius_norm)
        .on("the norm of the difference", options.difference_norm)
        .on("the kind of system", options.is_definite ? "definite" : "least squares");
    for (const double damp : options.damp.values()) agreement.on("a damping", damp);
    require_usable(options, B.rows(), X.rows());
    require<UsageError>(!options.is_definite || options.difference_norm == 0,
                        "error_bounds: the norm of the difference is ", options.difference_norm,
                        ", but the report is of a definite system; only least squares have that bound");
    require<ShapeError>(B.cols() == X.cols() && (!is_member || report.columns.size() == columns) &&
                            (options.damp.is_one() || options.damp.values().size() == columns) &&
                            (options.weights.empty() || options.weights.size() == columns),
                        "error_bounds: X has ", X.cols(), " columns, B ", B.cols(), ", the report ",
                        report.columns.size(), ", and there are ", options.damp.values().size(),
                        " dampings and weights of ", options.weights.size(), " columns");
    require<UsageError>(!is_member || columns == 0 || report.weighted != options.weights.empty(),
                        "error_bounds: the report is of a solve ", report.weighted ? "with" : "without",
                        " weights, and ", report.weighted ? "none" : "some", " are given here");
  });
  if (!is_member) return {};
  const std::vector<double> of_B = column_norms(B), of_X = column_norms(X);
  const ToleranceTest test = options.is_definite                         ? ToleranceTest::residual
                             : report.solver == name_of(Solver::bounded) ? ToleranceTest::projected_gradient
                                                                         : ToleranceTest::gradient;
  const bool is_of_this = options.sigma_min == report.sigma_min && options.difference_norm == 0;
  constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  constexpr double smallest = std::numeric_limits<double>::min();
  const double lost_in_squares = std::sqrt(static_cast<double>(X.rows()) * smallest);
  std::vector<double> bounds;
  for (std::size_t j = 0; j < columns; ++j) {
    const ColumnReport& column = report.columns[j];
    const KnownOperator of_all{options.sigma_min, options.frobenius_norm, options.difference_norm};
    const KnownOperator A = report.weighted ? with_weights(of_all, options.weights[j]) : of_all;
    // In units of ‖b‖, in which g is no smaller than A; and what sums below the range of double have lost.
    // Only problems with bounds are not scaled, and have b = 0 without x = 0.
    const double unit = of_B[j] > 0 ? of_B[j] : 1, lost = test == ToleranceTest::projected_gradient
                                                              ? lost_in_squares / unit
                                                          : of_B[j] > 0 ? smallest
                                                                        : 0;
    const ColumnNorms norms{
        .tested_norm =
            (options.is_definite ? column.tested_norm : column.relative_normal_residual_norm) + lost,
        .residual_norm = column.residual_norm / unit,
        .data_norm = of_B[j] / unit,
        .x_norm = of_X[j] / unit,
        .damp = options.damp[static_cast<Index>(j)],
        .quadrature = is_of_this ? column.quadrature : 1};
    bounds.push_back(unit * error_bound(norms, A, test, epsilon));
  }
  return bounds;
}

#define GRIDLOPS_INSTANTIATE(T)                                                            \
  template std::vector<double> error_bounds(const SolveReport&, const ConstDistMatrix<T>&, \
                                            const ConstDistMatrix<T>&, const ErrorBoundOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
