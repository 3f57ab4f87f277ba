// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "dist/column_powers.hpp"
#include "dist/describe_layout.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "solve/option_checks.hpp"

namespace gridlops {

namespace {

/// Norms of columns for each damping: element d + j·damps for column j.
struct NormsOfCurves {
  std::vector<double> x{}, residual{};
};

/// h = D²/(σ² + D²): the part of a component that a solution leaves in the residual.
template <Scalar T>
double left_out(const SpectralFactor<T>& factor, double value, double damp) {
  return factor.counts(value, damp) ? std::pow(damp / std::hypot(value, damp), 2) : 1;
}

/// Weights of the squares of components, for norms of x and of residuals at each damping.
class Weights {
 public:
  Weights(std::size_t values, std::size_t damps)
      : rows_(values), damps_(damps), elements_(2 * values * damps), scales_(2 * damps, 1.0) {}

  double& of_x(std::size_t k, std::size_t d) { return elements_[k + d * rows_]; }
  double& of_residual(std::size_t k, std::size_t d) { return elements_[k + (damps_ + d) * rows_]; }
  /// Factors of the norms.
  double& scale_of_x(std::size_t d) { return scales_[d]; }
  double& scale_of_residual(std::size_t d) { return scales_[damps_ + d]; }

  MatrixView<const double> view() const {
    const auto rows = static_cast<Index>(rows_);
    return {elements_.data(), rows, std::ssize(scales_), std::max<Index>(rows, 1)};
  }
  /// The norms, from those that a factor computed with these weights.
  NormsOfCurves norms(const std::vector<double>& both) const {
    NormsOfCurves norms;
    for (std::size_t k = 0; k < both.size(); ++k) {
      const std::size_t d = k % scales_.size();
      (d < damps_ ? norms.x : norms.residual).push_back(both[k] * scales_[d]);
    }
    return norms;
  }

 private:
  std::size_t rows_, damps_;
  std::vector<double> elements_, scales_;
};

/// Aᴴb times a power of two for each column, that of 1/‖b‖, so that it does not leave the range of T.
template <Scalar T>
DistMatrix<T> adjoint_of_unit_data(const LinearOperator<T>& A, const ConstDistMatrix<T>& B) {
  std::vector<int> powers;
  for (const double norm : column_norms(B))
    powers.push_back(norm > 0 && std::isfinite(norm) ? -std::ilogb(norm) : 0);
  DistMatrix<T> unit, AhB;
  attempt(B.grid()->comm(), [&] {
    unit = B.clone();
    AhB = DistMatrix<T>(B.grid(), A.domain().layout(B.layout().cols.partition));
  });
  multiply_by_powers(unit, powers);
  A.apply_adjoint(1, unit, 0, AhB);
  return AhB;
}

/// From x for the smallest damping D₀, and the norms of its residuals.
template <Scalar T>
NormsOfCurves norms_of_models(const LinearOperator<T>& A, const SpectralFactor<T>& factor,
                              const std::vector<double>& damps, double D0, const ConstDistMatrix<T>& B,
                              const ConstDistMatrix<T>& X, const SolveReport& report) {
  const std::vector<double>& values = factor.singular_values();
  Weights weights = attempt(X.grid()->comm(), [&] { return Weights(values.size(), damps.size()); });
  for (std::size_t d = 0; d < damps.size(); ++d) {
    const double D = damps[d];
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double t =
          factor.counts(values[k], D) ? std::pow(std::hypot(values[k], D0) / std::hypot(values[k], D), 2) : 0;
      weights.of_x(k, d) = t * t;
      weights.of_residual(k, d) = t * (left_out(factor, values[k], D) + left_out(factor, values[k], D0));
    }
    weights.scale_of_residual(d) = std::sqrt(D - D0) * std::sqrt(D + D0);
  }
  NormsOfCurves norms = weights.norms(
      factor.weighted_norms_of_solutions(X, adjoint_of_unit_data(A, B), D0, column_norms(B), weights.view()));
  for (std::size_t k = 0; k < norms.residual.size(); ++k)
    norms.residual[k] = std::hypot(norms.residual[k], report.columns[k / damps.size()].residual_norm);
  return norms;
}

/// From b.
template <Scalar T>
NormsOfCurves norms_of_data(const SpectralFactor<T>& factor, const std::vector<double>& damps,
                            const ConstDistMatrix<T>& B) {
  const std::vector<double>& values = factor.singular_values();
  Weights weights = attempt(B.grid()->comm(), [&] { return Weights(values.size(), damps.size()); });
  const double norm = values.empty() || values.front() == 0 ? 1 : values.front();
  for (std::size_t d = 0; d < damps.size(); ++d) {
    for (std::size_t k = 0; k < values.size(); ++k) {
      const double sum = std::hypot(values[k], damps[d]);
      const double of_unit = factor.counts(values[k], damps[d]) ? values[k] / sum * (norm / sum) : 0;
      weights.of_x(k, d) = of_unit * of_unit;
      weights.of_residual(k, d) = std::pow(left_out(factor, values[k], damps[d]), 2);
    }
    weights.scale_of_x(d) = 1 / norm;
  }
  return weights.norms(factor.weighted_norms(B, weights.view()));
}

/// Throws UsageError unless the norms at D₀ are those of x. Singular values that are unknown matter most
/// there.
void require_known_norms(const char* where, const std::vector<double>& found,
                         const std::vector<double>& damps, double D0, const std::vector<double>& of_x,
                         double most) {
  const auto first = static_cast<std::size_t>(std::find(damps.begin(), damps.end(), D0) - damps.begin());
  for (std::size_t j = 0; j < of_x.size(); ++j)
    require<UsageError>(!(std::abs(found[first + j * damps.size()] - of_x[j]) > most * of_x[j]), where,
                        ": rounding hides the singular values that decide at D = ", D0, ": the norm of x is ",
                        of_x[j], " in column ", j, ", and ", found[first + j * damps.size()],
                        " from singular values");
}

}  // namespace

template <Scalar T>
std::vector<DampingCurve> damping_curves(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                         const SpectralFactor<T>& factor, const std::vector<double>& damps,
                                         DampingRule rule, const PerColumn& noise,
                                         const SolveOptions& options) {
  constexpr const char* where = "damping_curves";
  constexpr double most = 0.01;
  const auto& grid = B.grid();
  const bool of_data = A.rows() < A.cols();
  double D0 = std::numeric_limits<double>::infinity();
  agree(grid, where, [&](Agreement& agreement) {
    describe_matrix(agreement, "B", B);
    describe_options(agreement, options);
    agreement.on("the rule", name_of(rule));
    for (const double damp : damps) agreement.on("a damping", damp);
    for (const double norm : noise.values()) agreement.on("the noise", norm);
    A.range().require_contains(B, where);
    require<ShapeError>(factor.domain() == (of_data ? A.range() : A.domain()), where,
                        ": the factor belongs to another operator");
    require<ShapeError>(noise.is_one() || std::ssize(noise.values()) == B.cols(), where, ": there are ",
                        B.cols(), " right-hand sides, and the norms of ", noise.values().size(), " noises");
    require<UsageError>(!options.initial_guess && options.damp == PerColumn(0), where,
                        ": there is no guess, and dampings are those of the curves");
    for (const double damp : damps) {
      require<UsageError>(std::isfinite(damp) && damp >= factor.facts().damp, where, ": the damping ", damp,
                          " is none that the factor serves, from ", factor.facts().damp, " on");
      D0 = std::min(D0, damp);
    }
    const double rounding = damps.empty() ? 0 : factor.relative_rounding(D0);
    require<UsageError>(rounding <= most, where,
                        ": rounding hides the singular values that decide at D = ", D0, ": it is ", rounding,
                        " of the smallest of their squares, and may be ", most);
  });
  if (!grid->is_member() || damps.empty())
    return std::vector<DampingCurve>(grid->is_member() ? at(B.cols()) : 0);
  SolveOptions of_least = options;
  of_least.damp = D0;
  of_least.record_history = false;
  DistMatrix<T> X = attempt(
      grid->comm(), [&] { return DistMatrix<T>(grid, A.domain().layout(B.layout().cols.partition)); });
  const SolveReport report = solve(Solver::direct, A, B, X, of_least, {.factor = &factor});
  const NormsOfCurves norms =
      of_data ? norms_of_data(factor, damps, B) : norms_of_models(A, factor, damps, D0, B, X, report);
  if (of_data) require_known_norms(where, norms.x, damps, D0, column_norms(X), most);
  std::vector<double> free_dimensions(damps.size(), std::numeric_limits<double>::quiet_NaN());
  if (rule == DampingRule::gcv)
    std::transform(damps.begin(), damps.end(), free_dimensions.begin(),
                   [&](double damp) { return factor.free_dimensions(damp); });
  std::vector<DampingCurve> curves(at(B.cols()));
  for (std::size_t j = 0; j < curves.size(); ++j) {
    curves[j].rule = rule;
    curves[j].noise = noise[static_cast<Index>(j)];
    for (std::size_t d = 0; d < damps.size(); ++d) {
      const std::size_t k = d + j * damps.size();
      curves[j].points.push_back({damps[d], norms.residual[k], norms.x[k], report.columns[j].reason});
      curves[j].points.back().free_dimensions = free_dimensions[d];
    }
    choose_damping(curves[j]);
  }
  return curves;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template std::vector<DampingCurve> damping_curves(const LinearOperator<T>&, const ConstDistMatrix<T>&,  \
                                                    const SpectralFactor<T>&, const std::vector<double>&, \
                                                    DampingRule, const PerColumn&, const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
