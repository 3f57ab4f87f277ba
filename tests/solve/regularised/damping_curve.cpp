// SPDX-License-Identifier: BSD-3-Clause
// Curves of sweeps, and what is chosen from them, are those of the filter factors of Tikhonov regularisation.
#include "gridlops/solve/damping_curve.hpp"

#include <array>
#include <cmath>

#include "support/disagreements.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 23;
const std::vector<double> singular_values = geometric(n, 1e3);

/// 0.01 to 3 in ten steps an order, in no order.
std::vector<double> dampings() {
  std::vector<double> damps;
  for (int k = 0; k < 25; ++k) damps.push_back(std::pow(10, -2 + 0.1 * ((7 * k) % 25)));
  return damps;
}

/// Smooth in the directions of A, with noise.
double element_of_b(const KnownSpectrum<double>& A, Index i) {
  double sum = 0.02 * counter_uniform(3, i, 0);
  for (Index k = 0; k < n; ++k)
    sum += std::pow(singular_values[static_cast<std::size_t>(k)], 1.5) * A.left(i, k);
  return sum;
}

/// The solution of a least-squares problem with known singular vectors.
class Filtered {
 public:
  Filtered(const KnownSpectrum<double>& A, const std::function<double(Index)>& b) {
    double inside = 0;
    for (Index k = 0; k < n; ++k) {
      double dot = 0;
      for (Index i = 0; i < m; ++i) dot += A.left(i, k) * b(i);
      squares_[static_cast<std::size_t>(k)] = dot * dot;
      inside += dot * dot;
    }
    for (Index i = 0; i < m; ++i) outside_ += b(i) * b(i);
    outside_ -= inside;
  }
  double x_square(double damp) const {
    return sum(damp, [](double value, double filter) { return std::pow(filter / value, 2); });
  }
  double residual_square(double damp) const {
    return outside_ + sum(damp, [](double, double filter) { return std::pow(1 - filter, 2); });
  }
  /// zᴴ(I − A(AᴴA + D²I)⁻¹Aᴴ)z of the right-hand side z.
  double quadratic_form(double damp) const {
    return outside_ + sum(damp, [](double, double filter) { return 1 - filter; });
  }
  /// (x′y″ − y′x″)/(x′² + y′²)^{3/2} with x = log ‖b − Ax‖, y = log ‖x‖, by differences over log D.
  double curvature(double damp) const {
    constexpr double h = 1e-3;
    std::array<double, 3> x{}, y{};
    for (int k = 0; k < 3; ++k) {
      const double there = damp * std::exp(h * (k - 1));
      x.at(static_cast<std::size_t>(k)) = std::log(residual_square(there)) / 2;
      y.at(static_cast<std::size_t>(k)) = std::log(x_square(there)) / 2;
    }
    const auto first = [](const std::array<double, 3>& f) { return (f[2] - f[0]) / (2 * h); };
    const auto second = [](const std::array<double, 3>& f) { return (f[2] - 2 * f[1] + f[0]) / (h * h); };
    return (first(x) * second(y) - first(y) * second(x)) / std::pow(std::hypot(first(x), first(y)), 3);
  }

 private:
  template <class Term>
  double sum(double damp, const Term& term) const {
    double total = 0;
    for (std::size_t k = 0; k < singular_values.size(); ++k) {
      const double value = singular_values[k], filter = value * value / (value * value + damp * damp);
      total += squares_[k] * term(value, filter);
    }
    return total;
  }
  std::array<double, n> squares_{};
  double outside_ = 0;
};

/// The place of the largest value, or of the smallest with a minus.
template <class Value>
Index place_of_largest(const std::vector<double>& damps, const Value& value) {
  const auto best =
      std::max_element(damps.begin(), damps.end(), [&](double a, double b) { return value(a) < value(b); });
  return best - damps.begin();
}

}  // namespace

TEST_CASE("The curve of a sweep, and the damping that each rule chooses, follow from filter factors") {
  const KnownSpectrum<double> matrix(m, n, singular_values);
  const auto b = [&](Index i) { return element_of_b(matrix, i); };
  const Filtered exact(matrix, b), probe(matrix, gcv_probe);
  const std::vector<double> damps = dampings();
  const auto count = static_cast<Index>(damps.size());
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::stationary_a, matrix);
    for (const DampingRule rule :
         {DampingRule::none, DampingRule::lcurve, DampingRule::discrepancy, DampingRule::gcv}) {
      CAPTURE(name_of(rule), describe(*grid));
      SolveOptions options;
      options.tolerance = 1e-12;
      options.max_iterations = 1000;
      std::vector<double> of_columns = damps;
      if (rule == DampingRule::gcv) of_columns.insert(of_columns.end(), damps.begin(), damps.end());
      options.damp = of_columns;
      const auto columns = std::ssize(of_columns);
      DistMatrix<double> B(grid, A->range().layout(columns)), X(grid, A->domain().layout(columns));
      B.fill([&](Index i, Index j) { return j < count ? b(i) : gcv_probe(i); });
      const SolveReport report = lsqr(*A, B, X, options);
      const double noise = 1.1 * std::sqrt(exact.residual_square(0.03));
      const DampingCurve curve = damping_curve(damps, report, X, rule, noise);
      if (!grid->is_member()) {
        CHECK(curve.points.empty());
        continue;
      }
      REQUIRE(curve.points.size() == damps.size());
      std::optional<Index> expected;
      for (std::size_t k = 0; k < damps.size(); ++k) {
        const CurvePoint& point = curve.points[k];
        CHECK(point.damp == damps[k]);
        CHECK(is_solved(point.reason));
        CHECK(point.residual_norm == Approx(std::sqrt(exact.residual_square(damps[k]))).epsilon(1e-6));
        CHECK(point.x_norm == Approx(std::sqrt(exact.x_square(damps[k]))).epsilon(1e-6));
        CHECK(std::isnan(point.free_dimensions) == (rule != DampingRule::gcv));
        if (rule == DampingRule::gcv)
          CHECK(point.free_dimensions == Approx(probe.quadratic_form(damps[k])).epsilon(1e-6));
        if (rule == DampingRule::discrepancy && point.residual_norm <= noise &&
            (!expected || damps[k] > damps[static_cast<std::size_t>(*expected)]))
          expected = static_cast<Index>(k);
      }
      if (rule == DampingRule::lcurve)
        expected = place_of_largest(damps, [&](double damp) { return exact.curvature(damp); });
      if (rule == DampingRule::gcv) {
        expected = place_of_largest(damps, [&](double damp) {
          return -exact.residual_square(damp) / std::pow(probe.quadratic_form(damp), 2);
        });
      }
      CHECK(curve.chosen == expected);
      CHECK(curve.lacks_choice() == false);
      CHECK(curve.remark.empty());
    }
  }
}

TEST_CASE("Curvatures of a fine curve are those of its logarithms") {
  const KnownSpectrum<double> matrix(m, n, singular_values);
  const Filtered exact(matrix, [&](Index i) { return element_of_b(matrix, i); });
  DampingCurve curve;
  curve.rule = DampingRule::lcurve;
  for (int k = 0; k <= 400; ++k) {
    const double damp = 0.01 * std::pow(10, 0.005 * k);
    curve.points.push_back({damp, std::sqrt(exact.residual_square(damp)), std::sqrt(exact.x_square(damp))});
  }
  double largest = 0;
  for (const CurvePoint& point : curve.points)
    largest = std::max(largest, std::abs(exact.curvature(point.damp)));
  // With A or b of another scale the curve is the same, shifted.
  const std::vector<CurvePoint> points = curve.points;
  for (const double scale_of_A : {1.0, 1e-100, 1e100}) {
    for (const double scale_of_b : {1.0, 1e-90, 1e90}) {
      for (std::size_t k = 0; k < points.size(); ++k)
        curve.points[k] = {scale_of_A * points[k].damp, scale_of_b * points[k].residual_norm,
                           scale_of_b / scale_of_A * points[k].x_norm};
      choose_damping(curve);
      for (std::size_t k = 1; k + 1 < points.size(); ++k)
        CHECK(std::abs(curve.points[k].merit - exact.curvature(points[k].damp)) <= 2e-3 * largest);
      CHECK(std::isnan(curve.points.front().merit));
      CHECK(std::isnan(curve.points.back().merit));
    }
  }
}

TEST_CASE("What was not solved is not chosen, and a curve that nothing can be chosen from says why") {
  DampingCurve curve;
  curve.rule = DampingRule::discrepancy;
  curve.noise = 1;
  curve.points = {{0, 0.5, 3}, {1, 0.9, 2}, {2, 0.95, 1, StopReason::iteration_limit}, {3, 2, 0.5}};
  choose_damping(curve);
  CHECK(curve.chosen == Index{1});
  CHECK(curve.remark.empty());
  curve.noise = 0.7;  // no larger range of smaller D would help
  choose_damping(curve);
  CHECK(curve.chosen == Index{0});
  CHECK(curve.remark.empty());
  curve.noise = 10;
  choose_damping(curve);
  CHECK(curve.chosen == Index{3});
  CHECK(curve.remark.find("end of the range") != std::string::npos);
  curve.noise = 0.1;
  choose_damping(curve);
  CHECK(curve.lacks_choice());
  CHECK(curve.remark.find("0.5") != std::string::npos);
  CHECK(curve.remark.find("0.1") != std::string::npos);
  for (const DampingRule rule : {DampingRule::lcurve, DampingRule::gcv}) {
    DampingCurve short_one;
    short_one.rule = rule;
    short_one.points = {{1, 0.9, 2}, {3, 2, 0.5}};
    choose_damping(short_one);
    CHECK(short_one.lacks_choice());
    CHECK_FALSE(short_one.remark.empty());
  }
}

TEST_CASE("GCV takes D = 0 where that leaves the data free dimensions, and says so where not") {
  DampingCurve curve;
  curve.rule = DampingRule::gcv;
  const auto with_free = [&curve](double residual, double free) {
    curve.points = {{0, residual, 3}, {1, 3, 2}, {2, 4, 1}};
    curve.points[0].free_dimensions = free;
    curve.points[1].free_dimensions = 3;
    curve.points[2].free_dimensions = 3.5;
    choose_damping(curve);
  };
  with_free(1, 2);
  CHECK(curve.chosen == Index{0});
  CHECK(curve.points[0].merit == 0.25);
  CHECK(curve.remark.empty());  // no range has a smaller D
  with_free(2.5, 2);
  CHECK(curve.chosen == Index{1});
  with_free(0, 1e-20);  // 0/0, to rounding
  CHECK(curve.chosen == Index{1});
  CHECK(std::isnan(curve.points[0].merit));
  CHECK(curve.remark.find("D = 0 was left out") != std::string::npos);
  // Squares that no number holds are compared all the same.
  for (const double scale : {1e-200, 1e200}) {
    with_free(1, 2);
    for (CurvePoint& point : curve.points) point.residual_norm *= scale;
    std::swap(curve.points[0], curve.points[2]);
    choose_damping(curve);
    CHECK(curve.chosen == Index{2});
  }
}

TEST_CASE("Columns that are not those of the dampings are refused") {
  const KnownSpectrum<double> matrix(m, n, singular_values);
  for (const GridPtr& grid : compact_grids()) {
    const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::stationary_a, matrix);
    const DistMatrix<double> X(grid, A->domain().layout(3));
    SolveReport report;
    report.columns.resize(3);
    CHECK_THROWS_AS(damping_curve({1, 2}, report, ConstDistMatrix<double>(X), DampingRule::none), ShapeError);
    CHECK_THROWS_AS(damping_curve({1, 2, 3}, report, ConstDistMatrix<double>(X), DampingRule::gcv),
                    ShapeError);
    if (grid->is_member()) {
      CHECK_THROWS_AS(damping_curve({1, -2, 3}, report, ConstDistMatrix<double>(X), DampingRule::none),
                      UsageError);
      const int ranks = grid->comm().size();
      if (ranks > 1) {
        const bool am_odd = grid->comm().rank() == ranks - 1;
        check_disagreement(grid->comm(), {difference("the noise", "1", "2", ranks - 1, ranks)}, [&] {
          damping_curve({1, 2, 3}, report, ConstDistMatrix<double>(X), DampingRule::discrepancy,
                        am_odd ? 2 : 1);
        });
        check_disagreement(grid->comm(), {"the rule"}, [&] {
          damping_curve({1, 2, 3}, report, ConstDistMatrix<double>(X),
                        am_odd ? DampingRule::gcv : DampingRule::lcurve);
        });
      }
    }
    report.columns.resize(2);
    if (grid->is_member())
      CHECK_THROWS_AS(damping_curve({1, 2, 3}, report, ConstDistMatrix<double>(X), DampingRule::none),
                      ShapeError);
  }
}
