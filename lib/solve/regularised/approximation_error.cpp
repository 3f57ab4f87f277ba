// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/refined_solver.hpp"
#include "gridlops/solve/spectrum.hpp"

namespace gridlops {

template <Scalar T>
double difference_norm(OperatorPtr<T> A, OperatorPtr<T> approximation, int steps, std::uint64_t seed) {
  return estimate_norm(*sum(std::move(A), scale(T(-1), std::move(approximation))), steps, seed);
}

template <Scalar T>
std::vector<double> approximation_error_bounds(const SolveReport& report, const ConstDistMatrix<T>& X,
                                               const PerColumn& damp, double difference_norm) {
  const std::size_t columns = at(X.cols());
  const bool is_member = X.grid()->is_member();
  agree(X.grid(), "approximation_error_bounds", [&](Agreement& agreement) {
    const auto require_usable = [](const char* name, double value) {
      require<UsageError>(value >= 0 && std::isfinite(value), "approximation_error_bounds: ", name, " is ",
                          value, "; it must be a finite number ≥ 0");
    };
    describe_matrix(agreement, "X", X);
    agreement.on("the norm of the difference", difference_norm);
    for (const double each : damp.values()) agreement.on("a damping", each);
    for (const double each : damp.values()) require_usable("a damping", each);
    require_usable("the norm of the difference", difference_norm);
    require<ShapeError>((!is_member || report.columns.size() == columns) &&
                            (damp.is_one() || damp.values().size() == columns),
                        "approximation_error_bounds: X has ", X.cols(), " columns, the report ",
                        report.columns.size(), ", and there are ", damp.values().size(), " dampings");
  });
  if (!is_member) return {};
  const std::vector<double> of_X = column_norms(X);
  std::vector<double> bounds;
  for (std::size_t j = 0; j < columns; ++j) {
    const ColumnReport& column = report.columns[j];
    const double D = damp[static_cast<Index>(j)];
    bounds.push_back(D == 0 ? std::numeric_limits<double>::infinity()
                            : (difference_norm * (column.residual_norm / D + of_X[j] / 2) +
                               column.normal_residual_norm / D) /
                                  D);
  }
  return bounds;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                          \
  template double difference_norm(OperatorPtr<T>, OperatorPtr<T>, int, std::uint64_t);                   \
  template std::vector<double> approximation_error_bounds(const SolveReport&, const ConstDistMatrix<T>&, \
                                                          const PerColumn&, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
