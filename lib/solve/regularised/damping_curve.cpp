// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/solve/damping_curve.hpp"

#include <algorithm>
#include <cmath>
#include <iomanip>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/describe_layout.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/dist/column_arithmetic.hpp"

namespace gridlops {

namespace {

/// The points that a rule considers, in order of increasing damping, each damping once.
std::vector<CurvePoint*> solved_points(DampingCurve& curve, bool also_undamped) {
  std::vector<CurvePoint*> points;
  for (CurvePoint& point : curve.points)
    if (is_solved(point.reason) && (also_undamped || point.damp > 0)) points.push_back(&point);
  std::stable_sort(points.begin(), points.end(),
                   [](const CurvePoint* a, const CurvePoint* b) { return a->damp < b->damp; });
  points.erase(std::unique(points.begin(), points.end(),
                           [](const CurvePoint* a, const CurvePoint* b) { return a->damp == b->damp; }),
               points.end());
  return points;
}

/// s = d log ‖x‖² / d log D, from the parabola through three points.
double slope(const CurvePoint& before, const CurvePoint& here, const CurvePoint& after) {
  const auto log_eta = [](const CurvePoint& point) { return 2 * std::log(point.x_norm); };
  const double left = std::log(here.damp / before.damp), right = std::log(after.damp / here.damp);
  const double of_left = (log_eta(here) - log_eta(before)) / left,
               of_right = (log_eta(after) - log_eta(here)) / right;
  return (right * of_left + left * of_right) / (left + right);
}

/// With t = (D‖x‖/‖b − Ax‖)², from the curvature in η = ‖x‖², ρ = ‖b − Ax‖² and ρ′ = −D²η′ (Hansen 2001, §5):
///
///   −2t (2 + s(1 + t)) / (s (1 + t²)^{3/2})
///
/// NaN if ‖x‖ falls by so little that the difference is within the error of the solutions.
double curvature(const CurvePoint& before, const CurvePoint& here, const CurvePoint& after) {
  constexpr double least_slope = 1e-5;
  const double s = slope(before, here, after);
  if (!(s < -least_slope)) return std::numeric_limits<double>::quiet_NaN();
  const double t = std::pow(here.damp * (here.x_norm / here.residual_norm), 2);
  return -2 * t * (2 + s * (1 + t)) / (s * std::pow(1 + t * t, 1.5));
}

/// The point with the smallest value that is a number, or null if there is none.
template <class Value>
CurvePoint* smallest(const std::vector<CurvePoint*>& points, const Value& value) {
  CurvePoint* best = nullptr;
  for (CurvePoint* point : points)
    if (!std::isnan(value(*point)) && (best == nullptr || value(*point) < value(*best))) best = point;
  return best;
}

CurvePoint* corner(const std::vector<CurvePoint*>& points) {
  for (std::size_t k = 1; k + 1 < points.size(); ++k)
    points[k]->merit = curvature(*points[k - 1], *points[k], *points[k + 1]);
  CurvePoint* const best = smallest(points, [](const CurvePoint& point) { return -point.merit; });
  return best != nullptr && best->merit > 0 ? best : nullptr;
}

/// The root of the GCV function. NaN if unknown, or 0/0: without damping the trace is a whole number, that of
/// the rows of A less its rank.
double root_of_gcv(const CurvePoint& point) {
  const bool is_known = point.free_dimensions > (point.damp > 0 ? 0 : 0.5);
  return is_known ? point.residual_norm / point.free_dimensions : std::numeric_limits<double>::quiet_NaN();
}

// Squares may leave the range of numbers where their roots differ.
CurvePoint* smallest_gcv(const std::vector<CurvePoint*>& points) {
  for (CurvePoint* point : points) point->merit = std::pow(root_of_gcv(*point), 2);
  return smallest(points, root_of_gcv);
}

CurvePoint* largest_within(const std::vector<CurvePoint*>& points, double noise) {
  CurvePoint* best = nullptr;
  for (CurvePoint* point : points)
    if (point->residual_norm <= noise) best = point;
  return best;
}

void add_remark(DampingCurve& curve, const char* remark) {
  curve.remark += (curve.remark.empty() ? "" : "; ") + std::string(remark);
}

/// A number rounded for people to compare.
struct Rounded {
  double value;
  friend std::ostream& operator<<(std::ostream& out, Rounded number) {
    return out << std::setprecision(3) << number.value << std::setprecision(17);
  }
};

}  // namespace

const char* name_of(DampingRule rule) {
  switch (rule) {
    case DampingRule::lcurve:
      return "lcurve";
    case DampingRule::discrepancy:
      return "discrepancy";
    case DampingRule::gcv:
      return "gcv";
    case DampingRule::none:
      break;
  }
  return "none";
}

void choose_damping(DampingCurve& curve) {
  curve.chosen.reset();
  curve.remark.clear();
  for (CurvePoint& point : curve.points) point.merit = std::numeric_limits<double>::quiet_NaN();
  if (curve.rule == DampingRule::none) return;
  const std::vector<CurvePoint*> points = solved_points(curve, curve.rule != DampingRule::lcurve);
  CurvePoint* best = nullptr;
  if (curve.rule == DampingRule::lcurve) {
    best = corner(points);
    if (best == nullptr)
      curve.remark = "the curve of those that were solved has no corner; try a wider range";
  } else if (curve.rule == DampingRule::gcv) {
    best = smallest_gcv(points);
    if (best == nullptr) curve.remark = "for no D are both the data solved and the trace known";
    if (!points.empty() && points.front()->damp == 0 && points.front()->free_dimensions <= 0.5)
      add_remark(curve, "D = 0 was left out: without damping A fits any data");
  } else {
    best = largest_within(points, curve.noise);
    const CurvePoint* const closest =
        smallest(points, [](const CurvePoint& point) { return point.residual_norm; });
    if (best == nullptr)
      curve.remark = closest == nullptr ? "no column was solved"
                                        : message("the smallest |B - A X|, ", Rounded{closest->residual_norm},
                                                  ", is more than the noise of ", Rounded{curve.noise});
  }
  if (best == nullptr) return;
  curve.chosen = best - curve.points.data();
  std::vector<CurvePoint*> compared = points;
  if (curve.rule != DampingRule::discrepancy)
    std::erase_if(compared, [](const CurvePoint* point) { return std::isnan(point->merit); });
  // The discrepancy rule takes the largest D within the noise, so a smaller D could not be chosen.
  const bool is_lowest = curve.rule != DampingRule::discrepancy && best == compared.front() && best->damp > 0;
  if (compared.size() > 1 && (best == compared.back() || is_lowest))
    add_remark(curve, "this is at an end of the range; a wider one may have a better");
}

double gcv_probe(Index row) {
  constexpr std::uint64_t seed = 0x676376;
  return counter_uniform(seed, row, 0) < 0 ? -1 : 1;
}

template <Scalar T>
DampingCurve damping_curve(const std::vector<double>& damps, const SolveReport& report,
                           const ConstDistMatrix<T>& X, DampingRule rule, double noise) {
  DampingCurve curve;
  curve.rule = rule;
  curve.noise = noise;
  const std::size_t count = damps.size(), columns = rule == DampingRule::gcv ? 2 * count : count;
  const bool is_member = X.grid()->is_member();
  agree(X.grid(), "damping_curve", [&](Agreement& agreement) {
    describe_matrix(agreement, "X", X);
    agreement.on("the rule", name_of(rule)).on("the noise", noise);
    for (const double damp : damps) agreement.on("a damping", damp);
    for (const double damp : damps)
      require<UsageError>(damp >= 0, "a damping of the sweep is ", damp, "; dampings are not negative");
    require<ShapeError>(
        at(X.cols()) == columns, "a sweep of ", count, " dampings by ", name_of(rule), " has ", columns,
        " columns, and X has ", X.cols(),
        rule == DampingRule::gcv ? ": behind those of b, gcv needs as many of gcv_probe()" : "");
    require<ShapeError>(!is_member || report.columns.size() == columns, "a sweep of ", columns,
                        " columns has a report of ", report.columns.size(),
                        ": it must be that of the solver which found X");
  });
  if (!is_member) return curve;
  const std::vector<double> norms = column_norms(X);
  for (std::size_t j = 0; j < count; ++j) {
    const ColumnReport& column = report.columns[j];
    curve.points.push_back({damps[j], column.residual_norm, norms[j], column.reason});
    const std::size_t probe = j + count;
    if (rule == DampingRule::gcv && is_solved(report.columns[probe].reason))
      curve.points.back().free_dimensions =
          std::pow(report.columns[probe].residual_norm, 2) + std::pow(damps[j] * norms[probe], 2);
  }
  choose_damping(curve);
  return curve;
}

#define GRIDLOPS_INSTANTIATE(T)                                                       \
  template DampingCurve damping_curve(const std::vector<double>&, const SolveReport&, \
                                      const ConstDistMatrix<T>&, DampingRule, double);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
