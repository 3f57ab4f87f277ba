// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "dist/column_boxes.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "solve/column_blocks.hpp"
#include "solve/methods/method_of.hpp"
#include "solve/run/column_run.hpp"

namespace gridlops {

namespace {

/// Least squares in the box l ≤ x ≤ u by conjugate gradients on faces, and projected gradients between them
/// (Dostál: Box constrained quadratic programming with proportioning and projections, SIAM J. Optim. 7, 1997;
/// Optimal Quadratic Programming Algorithms, 2009, §5.8), for many right-hand sides at once, each with its
/// own face and steps. With the gradient s = Aᴴr − D²x, its part φ where x is on no bound, and its part β
/// where x is on one that β leads away from:
///
///   q = A w    α = min(sᵀw/(‖q‖² + D²‖w‖²), the way to the boundary)    x += α w    r −= α q
///   w = φ + (‖φ‖²/‖φ₋‖²) w    while no bound is met
///       P(x + φ/‖A‖²) − x     where such a step has met a bound: P, the projection, meets many at once
///       β                     where β is longer than φ: x leaves bounds
///       φ                     after either
///
/// Dostál's step to the projection has a fixed length. Here each step ends at the minimum along w, so that
/// none raises the objective, and ‖A‖ may be an estimate. Every direction takes one product with A and one
/// with Aᴴ. The tested norm is that of φ + β, which is 0 at solutions alone.
template <Scalar T>
class Bounded final : public ColumnMethod<T> {
 public:
  explicit Bounded(const SolverCall<T>& call)
      : ColumnMethod<T>(call.A, traits_of(call.solver)),
        options_(call.options),
        given_lower_(call.operands.lower),
        given_upper_(call.operands.upper) {
    require<UsageError>(!is_complex<T>,
                        "bounded: complex numbers have no order, so that nothing bounds them; "
                        "take matrices of real and imaginary parts");
    require<UsageError>(!options_.nonnegative || given_lower_ == nullptr,
                        "bounded: there are lower bounds, and x is to be nonnegative, too; leave one out");
  }

  void complete(SolveOptions&) override {
    norm_ = estimate_norm(this->op(), 5);
    if (given_lower_ != nullptr || given_upper_ != nullptr) check_bounds();
    bounds_of_state_ = bounds_;
  }

  void describe(MethodState<T>& state) override {
    state.solution(x);
    state.vector("r", r, A.range());
    for (const auto& [name, kept] : {std::pair{"s", &s}, {"w", &w}, {"lower", &lower}, {"upper", &upper}})
      state.vector(name, *kept, A.domain());
    state.scratch(q, A.range());
    for (DistMatrix<T>* part : {&phi, &beta, &way}) state.scratch(*part, A.domain());
    state.scalars(gamma);
    state.scalars(step_);
    state.number(bounds_of_state_);
    state.check([this](Index) {
      require<InputError>(bounds_of_state_ == bounds_,
                          "the checkpoint is of a solve with other bounds; a restart takes the same");
      return true;
    });
  }

  void start(ColumnRun<T>& run) override {
    copy_bounds(run);
    w.set_zero();
    to_nearest(w);  // the reference of the tolerance is of this x, whatever the guess
    to_nearest(x);
    run.copy_data(r);
    require_range(run);
    A.apply_adjoint(1, r, 0, s);
    const auto [bb, of_data, ww] = run.sum(norm2(r), norm2(s), norm2(w));
    ColumnScalars reference = sqrt(of_data);
    if (largest(ww) > 0) {
      compute_gradient(run, w);
      reference = max(reference, sqrt(run.sum(norm2(s))[0]));
    }
    if (largest(ww) > 0 || !run.begins_from_data()) compute_gradient(run, x);
    w.set_zero();
    const Norms norms = measure(run, options_.error > 0);
    run.set_norms({.tested = sqrt(norms.tested2()),
                   .residual = sqrt(norms.rr),
                   .x = sqrt(norms.xx),
                   .A = ColumnScalars(bb.size(), norm_),
                   .reference = reference,
                   .data = sqrt(bb),
                   .quadrature = norms.quadrature});
    restart(run);
  }

  void iterate(ColumnRun<T>& run) override {
    A.apply(1, w, 0, q);  // q = A w
    update_in_box(BoxKind::reach, 1, w, x, box(), way);
    const ColumnScalars reach(column_norms(way, std::numeric_limits<double>::infinity()));
    const auto [sw, qq, ww] = run.sum(dot(s, w), norm2(q), norm2(w));
    if (run.ends()) return;
    run.raise_operator_norms(sqrt(ratio(qq, ww)));  // ‖A‖ ≥ ‖q‖/‖w‖
    const ColumnFactors D2 = run.squared_damping();
    ColumnScalars alpha = steps(run, sw, qq + D2 * ww);
    const std::vector<char> meets = end_in_box(reach, alpha);
    update_in_box(BoxKind::step, alpha, w, x, box(), x);  // x += α w
    r -= alpha * q;
    A.apply_adjoint(1, r, 0, s);  // s = Aᴴ r − D² x
    s -= D2 * x;
    const Norms norms = measure(run, options_.error > 0);
    run.set_norms({.tested = sqrt(norms.tested2()),
                   .residual = sqrt(norms.rr),
                   .x = sqrt(norms.xx),
                   .rounding = rounding_of(run, norms),
                   .quadrature = norms.quadrature});
    turn(run, norms, meets);
  }

  TrueNorms true_norms(ColumnRun<T>& run) override {
    compute_gradient(run, x);
    const Norms norms = measure(run, true);
    const ColumnScalars tested = sqrt(norms.tested2());
    ColumnScalars reference(tested.size()), rounding = rounding_of(run, norms);
    for (Index k = 0; k < tested.size(); ++k) {
      const ColumnState& state = run.column(k);
      reference[k] = state.reference;
      // No gradient of x is more accurate.
      const double of_products =
          of_rounding(state, state.data_norm + state.operator_norm * std::sqrt(norms.xx[k]), norms.xx[k]);
      if (tested[k] <= std::sqrt(epsilon) * state.reference) rounding[k] = std::max(rounding[k], of_products);
    }
    return {.residual = sqrt(norms.rr),
            .normal = tested,
            .tested = tested,
            .x = sqrt(norms.xx),
            .reference = reference,
            .rounding = rounding,
            .quadrature = norms.quadrature};
  }

  /// From the s that start() or true_norms() has computed.
  void restart(ColumnRun<T>& run) override {
    gamma = ColumnScalars(run.active_count(), std::numeric_limits<double>::infinity());
    step_ = ColumnScalars(run.active_count(), conjugate);
    turn(run, measure(run, false), std::vector<char>(at(run.active_count()), 0));
  }

  ColumnScalars residual_gap(ColumnRun<T>& run) override {
    run.copy_data(q);
    A.apply(-1, x, 1, q);
    q -= r;  // b − A x − r
    return sqrt(run.sum(norm2(q))[0]);
  }

 private:
  using ColumnMethod<T>::A;
  static constexpr auto epsilon = static_cast<double>(std::numeric_limits<Real<T>>::epsilon());
  // How w was made: by conjugate gradients, as φ alone, by the projection, as β.
  static constexpr double conjugate = 0, anew = 1, projected = 2, released = 3;

  struct Norms {
    ColumnScalars of_phi, of_beta, rr, xx;  // ‖φ‖², ‖β‖², ‖r‖², ‖x‖²
    ColumnScalars quadrature{};

    ColumnScalars tested2() const { return of_phi + of_beta; }
  };

  ColumnBox<T> box() const { return {lower, upper}; }
  void to_nearest(DistMatrix<T>& Y) { update_in_box(BoxKind::nearest, 1, Y, Y, box(), Y); }

  void check_bounds();
  void require_range(ColumnRun<T>& run) const;
  void copy_bounds(ColumnRun<T>& run) {
    constexpr auto infinity = std::numeric_limits<Real<T>>::infinity();
    const auto copy_or_fill = [&](const ConstDistMatrix<T>* given, Real<T> otherwise, DistMatrix<T>& to) {
      if (given != nullptr) return run.copy_operand(*given, to);
      to.grid()->backend()->template kernels<T>().fill(T(otherwise), to.local());
    };
    copy_or_fill(given_lower_, options_.nonnegative ? 0 : -infinity, lower);
    copy_or_fill(given_upper_, infinity, upper);
  }

  /// r = b − A y,  s = Aᴴ r − D² y.
  void compute_gradient(ColumnRun<T>& run, const DistMatrix<T>& y) {
    run.copy_data(r);
    A.apply(-1, y, 1, r);
    A.apply_adjoint(1, r, 0, s);
    s -= run.squared_damping() * y;
  }

  /// Sets φ and β. If errors are to be bounded, also computes Q = 2μG/‖φ + β‖² of ColumnReport::quadrature:
  /// the objective f/2 can fall by at most G = max sᵀd − μ‖d‖²/2 over all d with x + d in the box, since its
  /// curvature is at least μ.
  Norms measure(ColumnRun<T>& run, bool bounds_errors) {
    update_in_box(BoxKind::free, 1, s, x, box(), phi);
    update_in_box(BoxKind::chopped, 1, s, x, box(), beta);
    ColumnScalars mu(run.active_count());
    for (Index k = 0; k < mu.size(); ++k) {
      const double root = std::hypot(run.column(k).damp, options_.sigma_min);
      mu[k] = root * root;
    }
    if (!bounds_errors || largest(mu) == 0) {
      const auto [of_phi, of_beta, rr, xx] = run.sum(norm2(phi), norm2(beta), norm2(r), norm2(x));
      return {of_phi, of_beta, rr, xx, ColumnScalars(mu.size(), 1)};
    }
    update_in_box(BoxKind::arc, ratio(1, mu), s, x, box(), way);
    const auto [of_phi, of_beta, rr, xx, sd, dd] =
        run.sum(norm2(phi), norm2(beta), norm2(r), norm2(x), dot(s, way), norm2(way));
    Norms norms{of_phi, of_beta, rr, xx, ColumnScalars(mu.size(), 1)};
    for (Index k = 0; k < mu.size(); ++k) {
      const double G = sd[k] - mu[k] * dd[k] / 2,
                   Q = (1 + a_few * epsilon) * 2 * mu[k] * G / (of_phi[k] + of_beta[k]);
      if (mu[k] > 0 && Q >= 0 && Q < 1) norms.quadrature[k] = Q;
    }
    return norms;
  }

  static double of_rounding(const ColumnState& state, double residual, double xx) {
    return a_few * epsilon * (state.operator_norm * residual + state.damp * state.damp * std::sqrt(xx));
  }
  /// The norm of φ + β that rounding of s alone explains.
  static ColumnScalars rounding_of(ColumnRun<T>& run, const Norms& norms) {
    ColumnScalars rounding(norms.rr.size());
    for (Index k = 0; k < rounding.size(); ++k)
      rounding[k] = of_rounding(run.column(k), std::sqrt(norms.rr[k]), norms.xx[k]);
    return rounding;
  }

  /// The steps to the minima along w. Where rounding has turned a direction of conjugate gradients uphill, 0,
  /// and they begin anew.
  ColumnScalars steps(ColumnRun<T>& run, ColumnScalars sw, ColumnScalars curvature) {
    std::vector<Index> lost;
    for (Index k = 0; k < sw.size(); ++k)
      if (step_[k] == conjugate && (sw[k] <= 0 || curvature[k] <= 0)) lost.push_back(k);
    for (const Index k : lost) sw[k] = curvature[k] = 1;
    ColumnScalars alpha = run.steps(sw, curvature);
    for (const Index k : lost) {
      alpha[k] = 0;
      gamma[k] = std::numeric_limits<double>::infinity();
    }
    return alpha;
  }
  /// Shortens the steps that would leave the box, and says which.
  static std::vector<char> end_in_box(const ColumnScalars& reach, ColumnScalars& alpha) {
    std::vector<char> meets(at(alpha.size()), 0);
    for (Index k = 0; k < alpha.size(); ++k) {
      if (alpha[k] * reach[k] < 1 || alpha[k] == 0) continue;
      alpha[k] = 1 / reach[k];
      meets[at(k)] = 1;
    }
    return meets;
  }

  /// The next directions.
  void turn(ColumnRun<T>& run, const Norms& norms, const std::vector<char>& meets) {
    const ColumnScalars ratios = ratio(norms.of_phi, gamma);
    ColumnScalars factors(gamma.size()), arcs = factors;
    std::vector<char> projects(at(gamma.size()), 0), releases = projects;
    for (Index k = 0; k < gamma.size(); ++k) {
      const bool was_on_face = step_[k] == conjugate || step_[k] == anew, meets_bound = meets[at(k)] != 0;
      const double norm = std::hypot(run.column(k).operator_norm, run.column(k).damp);
      arcs[k] = norm > 0 ? 1 / norm / norm : 0;
      if (was_on_face && meets_bound && norms.of_phi[k] > 0) {
        step_[k] = projected;
      } else if (norms.of_beta[k] > norms.of_phi[k]) {
        step_[k] = released;
      } else {
        factors[k] = was_on_face && !meets_bound ? ratios[k] : 0;
        step_[k] = factors[k] > 0 ? conjugate : anew;
      }
      projects[at(k)] = step_[k] == projected ? 1 : 0;
      releases[at(k)] = step_[k] == released ? 1 : 0;
    }
    // A step may have ended on bounds that it met but for rounding.
    update_in_box(BoxKind::free, 1, w, x, box(), w);
    update(xpby(phi, factors, w));  // w = φ + (‖φ‖²/‖φ₋‖²) w
    copy_columns(releases, beta, w);
    if (std::find(projects.begin(), projects.end(), 1) != projects.end()) {
      update_in_box(BoxKind::arc, arcs, phi, x, box(), way);
      copy_columns(projects, way, w);
    }
    gamma = norms.of_phi;
  }

  const SolveOptions& options_;
  const ConstDistMatrix<T>*const given_lower_, *const given_upper_;
  double norm_ = 0;                          // ‖A‖, estimated
  double bounds_ = 0, bounds_of_state_ = 0;  // numbers that tell bounds from others
  DistMatrix<T> x, r, s, w, lower, upper, q, phi, beta, way;
  ColumnScalars gamma;  // ‖φ‖²
  ColumnScalars step_;
};

/// Throws UsageError, on all ranks, if squares would leave the range of the numbers, for the nearest point w
/// and r = b (collective over the grid). x, the residual, the gradient s and A s are about A⁻¹b, b, Aᴴb and A
/// Aᴴb, with A w for b if it is larger. Gradients are to be seen until they are ε times what they were.
template <Scalar T>
void Bounded<T>::require_range(ColumnRun<T>& run) const {
  constexpr int of_A = sizeof(Real<T>) == 4 ? 44 : 240, of_vectors = sizeof(Real<T>) == 4 ? 100 : 450,
                of_zero = std::numeric_limits<int>::min() / 2;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto power_of = [](double norm, int otherwise) {
    return norm > 0 && std::isfinite(norm) ? std::ilogb(norm) : otherwise;
  };
  const std::vector<double> of_w = column_norms(w, infinity), of_b = column_norms(r, infinity);
  for (std::size_t k = 0; k < of_b.size(); ++k) {
    const double D = run.column(static_cast<Index>(k)).damp;
    const int power_A = power_of(std::max(norm_, D), 0);  // of [A; D I]
    const int power = std::max(power_of(of_b[k], of_zero), power_of(of_w[k], of_zero) + power_A);
    bool fits = std::abs(power_A) <= of_A;
    for (const int times_A : {-1, 0, 1, 2}) fits = fits && std::abs(power + times_A * power_A) <= of_vectors;
    require<UsageError>(fits || power <= of_zero / 2, "bounded: the norm of A is about ", norm_, ", D is ", D,
                        ", a right-hand side has elements of up to ", of_b[k],
                        ", and the point between its bounds that is nearest to 0 of up to ", of_w[k],
                        "; a solver with bounds does not scale its problem, and squares of norms would leave "
                        "the range of the numbers: multiply A by a constant, and B and the bounds by others, "
                        "so that norms are about 1");
  }
}

/// Looks for bounds between which there is no number, and sums numbers that tell these bounds from others,
/// the same on every grid (collective over the grid).
template <Scalar T>
void Bounded<T>::check_bounds() {
  const ConstDistMatrix<T>& any = given_lower_ != nullptr ? *given_lower_ : *given_upper_;
  const auto& backend = any.grid()->backend();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Range rows = any.local_row_range(), cols = any.local_col_range();
  const auto column_of = [&](const ConstDistMatrix<T>* given, Index j, double otherwise) {
    std::vector<double> column(at(rows.size), otherwise);
    if (given == nullptr || rows.size == 0) return column;
    std::vector<T> elements(at(rows.size));
    backend->download(given->local().column(j), elements.data(), rows.size * Index{sizeof(T)});
    std::transform(elements.begin(), elements.end(), column.begin(),
                   [](T element) { return static_cast<double>(std::real(element)) + 0.0; });
    return column;
  };
  std::vector<double> first{-infinity}, sum(1, 0.0), bounds(2, 0.0);
  FailureScope failures;
  failures.run([&] {
    backend->synchronize();
    for (Index j = 0; any.owned() && j < cols.size; ++j) {
      const std::vector<double> low = column_of(given_lower_, j, options_.nonnegative ? 0 : -infinity),
                                high = column_of(given_upper_, j, infinity);
      for (Index i = 0; i < rows.size; ++i) {
        const double l = low[at(i)], u = high[at(i)],
                     place = static_cast<double>((cols.begin + j) * any.rows() + rows.begin + i);
        const bool has_number = l <= u && l < infinity && u > -infinity;
        if (!has_number && -place > first[0]) {
          first[0] = -place;
          bounds = {l, u};
        }
        for (const auto& [bound, stream] : {std::pair{l, Index{0}}, {u, Index{1}}})
          sum[0] += std::floor(0x1p20 * counter_uniform(std::bit_cast<std::uint64_t>(bound), rows.begin + i,
                                                        2 * (cols.begin + j) + stream));
      }
    }
  });
  const double mine = first[0];
  failures.reduce(any.grid()->comm(), first, ReductionOrder::any, ReduceOp::max);
  if (mine != first[0]) bounds = {0, 0};
  failures.reduce(any.grid()->comm(), bounds);
  failures.reduce(any.grid()->comm(), sum);
  bounds_ = sum[0];
  if (first[0] == -infinity) return;
  const auto place = static_cast<Index>(-first[0]);
  throw UsageError(
      message("bounded: element ", place % any.rows(), " of column ", place / any.rows(), " has the bounds ",
              bounds[0], " and ", bounds[1],
              ", and no number is between them; a lower bound must be at most the upper one, and "
              "neither NaN"));
}

}  // namespace

template <>
struct MethodOf<Solver::bounded> {
  template <Scalar T>
  using Type = Bounded<T>;
};

#define GRIDLOPS_INSTANTIATE(T) template MethodPtr<T> make_method_of<Solver::bounded>(const SolverCall<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
