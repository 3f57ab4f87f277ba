// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/error_bound.hpp"

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

void require_usable(const char* name, double value) {
  require<UsageError>(value >= 0 && std::isfinite(value), "error_bounds: ", name, " is ", value,
                      "; it must be a finite number ≥ 0");
}

}  // namespace

void require_usable(const ErrorBoundOptions& options, Index rows, Index cols) {
  for (const double damp : options.damp.values()) require_usable("a damping", damp);
  require_usable("sigma_min", options.sigma_min);
  require_usable("the norm of A", options.frobenius_norm);
  require<UsageError>(options.sigma_min == 0 || rows >= cols, "error_bounds: sigma_min is ",
                      options.sigma_min, ", but a matrix of ", rows, " x ", cols, " takes some models to 0");
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
        .on("the kind of system", options.is_definite ? "definite" : "least squares");
    for (const double damp : options.damp.values()) agreement.on("a damping", damp);
    require_usable(options, B.rows(), X.rows());
    require<ShapeError>(B.cols() == X.cols() && (!is_member || report.columns.size() == columns) &&
                            (options.damp.is_one() || options.damp.values().size() == columns),
                        "error_bounds: X has ", X.cols(), " columns, B ", B.cols(), ", the report ",
                        report.columns.size(), ", and there are ", options.damp.values().size(), " dampings");
  });
  if (!is_member) return {};
  const std::vector<double> of_B = column_norms(B), of_X = column_norms(X);
  const KnownOperator A{options.sigma_min, options.frobenius_norm};
  const ToleranceTest test = options.is_definite ? ToleranceTest::residual : ToleranceTest::gradient;
  std::vector<double> bounds;
  for (std::size_t j = 0; j < columns; ++j) {
    const ColumnReport& column = report.columns[j];
    const double damp = options.damp[static_cast<Index>(j)];
    // Where b is 0, the report has no relative norm.
    const double definite = column.reference_norm > 0 ? column.tested_norm * column.reference_norm
                                                      : column.residual_norm + damp * damp * of_X[j];
    const ColumnNorms norms{.tested_norm = options.is_definite ? definite : column.normal_residual_norm,
                            .residual_norm = column.residual_norm,
                            .data_norm = of_B[j],
                            .x_norm = of_X[j],
                            .damp = damp,
                            .quadrature = options.sigma_min == report.sigma_min ? column.quadrature : 1};
    bounds.push_back(
        error_bound(norms, A, test, static_cast<double>(std::numeric_limits<Real<T>>::epsilon())));
  }
  return bounds;
}

#define GRIDLOPS_INSTANTIATE(T)                                                            \
  template std::vector<double> error_bounds(const SolveReport&, const ConstDistMatrix<T>&, \
                                            const ConstDistMatrix<T>&, const ErrorBoundOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
