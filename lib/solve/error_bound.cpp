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

namespace gridlops {

namespace {

/// ‖g‖/μ + R in an order of operations that squares no norm.
double error_bound(const ColumnReport& column, double norm_b, double norm_x, double damp, double norm_A,
                   double sigma_min, double unit) {
  const double root = std::hypot(damp, sigma_min);  // √μ
  if (root == 0) return std::numeric_limits<double>::infinity();
  const double of_gradient = column.normal_residual_norm / root / root,
               hidden_by_products =
                   norm_A / root * (column.residual_norm / root) + std::pow(damp / root, 2) * norm_x,
               hidden_in_residual = norm_A / root * norm_x + norm_b / root;
  return of_gradient + unit * (hidden_by_products + hidden_in_residual);
}

void require_usable(const char* name, double value) {
  require<UsageError>(value >= 0 && std::isfinite(value), "error_bounds: ", name, " is ", value,
                      "; it must be a finite number ≥ 0");
}

}  // namespace

template <Scalar T>
std::vector<double> error_bounds(const SolveReport& report, const ConstDistMatrix<T>& B,
                                 const ConstDistMatrix<T>& X, const ErrorBoundOptions& options) {
  const std::size_t columns = at(X.cols());
  const bool is_member = X.grid()->is_member();
  agree(X.grid(), "error_bounds", [&](Agreement& agreement) {
    describe_matrix(agreement, "B", B);
    describe_matrix(agreement, "X", X);
    agreement.on("sigma_min", options.sigma_min).on("the norm of A", options.operator_norm);
    for (const double damp : options.damp.values()) agreement.on("a damping", damp);
    for (const double damp : options.damp.values()) require_usable("a damping", damp);
    require_usable("sigma_min", options.sigma_min);
    require_usable("the norm of A", options.operator_norm);
    require<UsageError>(options.sigma_min == 0 || B.rows() >= X.rows(), "error_bounds: sigma_min is ",
                        options.sigma_min, ", but a matrix of ", B.rows(), " x ", X.rows(),
                        " takes some models to 0");
    require<ShapeError>(B.cols() == X.cols() && (!is_member || report.columns.size() == columns) &&
                            (options.damp.is_one() || options.damp.values().size() == columns),
                        "error_bounds: X has ", X.cols(), " columns, B ", B.cols(), ", the report ",
                        report.columns.size(), ", and there are ", options.damp.values().size(), " dampings");
  });
  if (!is_member) return {};
  const std::vector<double> of_B = column_norms(B), of_X = column_norms(X);
  constexpr double unit = static_cast<double>(std::numeric_limits<Real<T>>::epsilon()) / 2;
  std::vector<double> bounds;
  for (std::size_t j = 0; j < columns; ++j)
    bounds.push_back(error_bound(report.columns[j], of_B[j], of_X[j], options.damp[static_cast<Index>(j)],
                                 options.operator_norm, options.sigma_min, unit));
  return bounds;
}

template <Scalar T>
double frobenius_norm(const ConstDistMatrix<T>& A) {
  const std::vector<double> columns = column_norms(A);
  const double largest = columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end());
  if (largest == 0 || !std::isfinite(largest)) return largest;
  double sum = 0;
  for (const double norm : columns) sum += std::pow(norm / largest, 2);
  return largest * std::sqrt(sum);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                   \
  template std::vector<double> error_bounds(const SolveReport&, const ConstDistMatrix<T>&,        \
                                            const ConstDistMatrix<T>&, const ErrorBoundOptions&); \
  template double frobenius_norm(const ConstDistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
