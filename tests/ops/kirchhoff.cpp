// SPDX-License-Identifier: BSD-3-Clause
// Compares Kirchhoff operators with dense matrices made by the formula, element by element.
#include "gridlops/ops/kirchhoff.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <span>

#include "base/numbers.hpp"
#include "gridlops/solve/solver.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sizes of a problem, its travel times, its weights and its wavelet. Traces have the ends of `pairs`, or are
/// sources × receivers.
struct Problem {
  std::vector<Index> image = {4, 3};
  Index sources = 5, receivers = 3, samples = 9;
  RayValues times{};
  Recording recording{.interval = 0.5, .wavelet = {3, -1, 2, 1}, .centre = 1};
  KirchhoffOptions options{};
  std::vector<TraceEnds> pairs{};

  Index points() const {
    Index points = 1;
    for (const Index size : image) points *= size;
    return points;
  }
  std::vector<Index> data() const {
    if (recording.ends) return {static_cast<Index>(pairs.size()), samples};
    return {sources, receivers, samples};
  }
};

/// A table of points × ends, with value(share) for a share of 0 … 1.
template <class Value>
std::vector<double> table_of(const Problem& problem, std::uint64_t seed, Index ends, const Value& value) {
  std::vector<double> table;
  for (Index end = 0; end < ends; ++end)
    for (Index i = 0; i < problem.points(); ++i)
      table.push_back(value((1 + counter_uniform(seed, i, end)) / 2));
  return table;
}

template <class Value>
RayValues tables_of(const Problem& problem, std::uint64_t seed, const Value& value) {
  return tabulated_rays(problem.points(), table_of(problem, seed, problem.sources, value),
                        table_of(problem, seed + 1, problem.receivers, value));
}

/// Times are eighths of a unit, quarters of a sample, so that products of integers are exact. Some waves
/// arrive in the last two samples, after the last, or never.
Problem exact_problem(Problem problem = {}) {
  const double longest = 0.3 * static_cast<double>(problem.samples);
  problem.times = tables_of(problem, 1, [=](double share) {
    return share < 0.05 ? infinity : std::floor(8 * share * longest) / 8;
  });
  return problem;
}

/// That problem with this many terms of weights, which are integers.
Problem weighted_problem(std::uint64_t terms, Problem problem = {}) {
  problem = exact_problem(std::move(problem));
  for (std::uint64_t q = 0; q < terms; ++q)
    problem.options.weights.push_back(
        tables_of(problem, 3 + 2 * q, [](double share) { return std::floor(7 * share) - 3; }));
  return problem;
}

/// That problem with arrivals that are spread over triangles of half bases up to `widest`. Delays are
/// quarters of a sample, so that some lie in the middle between two of these.
Problem spread_problem(Index widest, Problem problem) {
  problem.options.spread = {
      tables_of(problem, 20,
                [=](double share) { return std::floor(4 * share * static_cast<double>(widest)) / 8; }),
      widest};
  return problem;
}

/// Traces in no order, of which two have the same ends; not all pairs of a source and a receiver have one.
Problem problem_of_pairs(Problem problem) {
  problem.pairs = {{4, 2}, {0, 1}, {1, 1}, {4, 0}, {0, 1}, {2, 2}, {1, 0}};
  problem.recording.ends = [pairs = problem.pairs](Index trace) { return pairs[at(trace)]; };
  return problem;
}

double value_at(const AtPoints& values, Index end, Index point) {
  double value = 0;
  values(end, std::span(&point, 1), std::span(&value, 1));
  return value;
}

/// How much of point i is in sample k of the trace of source s and receiver r, before the wavelet.
double arrival(const Problem& problem, Index s, Index r, Index k, Index i) {
  const double t = (value_at(problem.times.from_source, s, i) + value_at(problem.times.to_receiver, r, i)) /
                   problem.recording.interval;
  const double floor = std::floor(t);
  if (!(0 <= floor && floor < static_cast<double>(problem.samples - 1))) return 0;
  double weight = problem.options.weights.empty() ? 1 : 0;
  for (const RayValues& term : problem.options.weights)
    weight += value_at(term.from_source, s, i) * value_at(term.to_receiver, r, i);
  const double w = t - floor, sample = static_cast<double>(k);
  return weight * (sample == floor ? 1 - w : sample == floor + 1 ? w : 0);
}

/// Half the base, in samples, of the triangle over which this arrival is spread.
Index half_base(const Problem& problem, Index s, Index r, Index i) {
  if (!problem.options.spread) return 1;
  const RayValues& delays = problem.options.spread->delays;
  const double h =
      (value_at(delays.from_source, s, i) + value_at(delays.to_receiver, r, i)) / problem.recording.interval;
  return std::clamp(static_cast<Index>(std::floor(h + 0.5)), Index{1}, problem.options.spread->widest);
}

double element(const Problem& problem, Index s, Index r, Index k, Index i) {
  const std::vector<double>& f = problem.recording.wavelet;
  const Index h = half_base(problem, s, r, i);
  double sum = 0;
  for (Index j = 0; j < static_cast<Index>(f.size()); ++j) {
    for (Index l = 1 - h; l < h; ++l) {
      const Index from = k + problem.recording.centre - j - l;
      if (0 <= from && from < problem.samples)
        sum += f[static_cast<std::size_t>(j)] * static_cast<double>(h - std::abs(l)) /
               static_cast<double>(h * h) * arrival(problem, s, r, from, i);
    }
  }
  return sum;
}

/// The operator's element in row i and column j of its spaces.
template <Scalar T>
ElementOf<T> element_of(const Problem& problem, const Space& data, const Space& image) {
  return [&](Index i, Index j) {
    const std::vector<Index> place = place_of(data.dims, i);
    const TraceEnds ends =
        problem.recording.ends ? problem.pairs[at(place[0])] : TraceEnds{place[0], place[1]};
    const Index point = number_of(image.dims, place_of(image.dims, j));
    return to_scalar<T>(element(problem, ends.source, ends.receiver, place.back(), point));
  };
}

template <Scalar T>
OperatorPtr<T> operator_of(const Problem& problem, const Space& data, const Space& image) {
  return kirchhoff<T>(data, image, problem.times, problem.recording, problem.options);
}

template <Scalar T>
void check_operator(const Problem& problem, const Space& data, const Space& image, double tolerance = 0) {
  INFO("from " << image.describe() << " to " << data.describe());
  check_elements<T>(*operator_of<T>(problem, data, image), element_of<T>(problem, data, image), tolerance);
}

Space data_space(const GridPtr& grid, const Problem& problem, int cut = 0, Axis axis = Axis::grid_rows,
                 int variant = 0, Axis columns = Axis::uncut) {
  return array_space(grid, dims_along(*grid, problem.data(), cut, axis, variant), axis, columns);
}

Space image_space(const GridPtr& grid, const Problem& problem, int cut = 0, Axis axis = Axis::uncut,
                  int variant = 0, Axis columns = Axis::uncut) {
  return array_space(grid, dims_along(*grid, problem.image, cut, axis, variant), axis, columns);
}

/// Whether operators of the ranks' own matrices go between these two axes, of which at least one is over all
/// ranks.
bool nested(Axis data, Axis image) {
  const auto rows = [](Axis axis) { return axis == Axis::grid_rows || axis == Axis::all; };
  const auto over_all = [](Axis axis) { return axis == Axis::all || axis == Axis::all_transposed; };
  return image != Axis::uncut && data != Axis::uncut && rows(data) != rows(image) &&
         (over_all(data) || over_all(image));
}

/// Checks an operator with data and images cut along every axis.
template <Scalar T>
void check_cuts(const Problem& problem, const std::vector<GridPtr>& grids) {
  for (const GridPtr& grid : grids) {
    int variant = 0;
    for (const Axis axis : all_axes) {
      for (const Axis image_axis : all_axes) {
        if (!legal(axis, image_axis) && !nested(axis, image_axis)) continue;
        variant = (variant + 1) % cut_variants;
        const int cut = problem.recording.ends ? 0 : variant % 2;
        check_operator<T>(problem, data_space(grid, problem, cut, axis, variant),
                          image_space(grid, problem, (variant / 2) % 2, image_axis, variant));
      }
    }
    check_operator<T>(problem, data_space(grid, problem, 0, Axis::grid_rows, 3, Axis::grid_cols),
                      image_space(grid, problem, 0, Axis::uncut, 0, Axis::grid_cols));
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Kirchhoff operators are their dense matrices, however data and image are cut",
                        "[kirchhoff]", Scalars) {
  check_cuts<TestType>(exact_problem(), all_grids());
}

TEMPLATE_TEST_CASE("Kirchhoff operators take a list of pairs of sources and receivers", "[kirchhoff]", float,
                   std::complex<double>) {
  check_cuts<TestType>(problem_of_pairs(exact_problem()), compact_grids());
}

TEMPLATE_TEST_CASE("Kirchhoff operators weight points by a sum of products", "[kirchhoff]", double,
                   std::complex<float>) {
  check_cuts<TestType>(problem_of_pairs(weighted_problem(2)), compact_grids());
}

TEMPLATE_TEST_CASE("Kirchhoff operators without tables call for times and weights in blocks", "[kirchhoff]",
                   float, std::complex<double>) {
  using R = Real<TestType>;
  Problem problem = weighted_problem(1);
  // Times and weights of five points and all ends, and of less than one.
  for (const Index bytes : {Index{sizeof(R)} * 2 * 5 * (problem.sources + problem.receivers), Index{0}}) {
    problem.options.table_bytes = bytes;
    check_cuts<TestType>(problem, compact_grids());
  }
}

TEMPLATE_TEST_CASE("Arrivals are spread over triangles", "[kirchhoff]", float, std::complex<double>) {
  check_cuts<TestType>(spread_problem(2, exact_problem()), compact_grids());
  Problem problem = spread_problem(2, problem_of_pairs(weighted_problem(2)));
  check_cuts<TestType>(problem, compact_grids());
  problem.options.table_bytes = 200;
  check_cuts<TestType>(problem, compact_grids());
  // A triangle of a half base of 1 is no spread. Ninths and others are rounded.
  const GridPtr grid = all_grids().front();
  const Space data = data_space(grid, problem), image = image_space(grid, problem);
  check_operator<TestType>(spread_problem(1, problem), data, image);
  constexpr double tolerance = 100 * std::numeric_limits<Real<TestType>>::epsilon();
  check_operator<TestType>(spread_problem(7, problem), data, image, tolerance);
}

TEST_CASE("Functions are called once for each table, or for blocks that fit into the memory", "[kirchhoff]") {
  Problem problem = exact_problem();
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Space data = data_space(grid, problem, 0, Axis::all), image = image_space(grid, problem);
    const Index sources = data.local_box()[0].size, ends = sources == 0 ? 0 : sources + problem.receivers;
    for (const Index at_once : {Index{0}, Index{5}, problem.points()}) {
      Index calls = 0, most = 0;
      const auto counted = [&](const AtPoints& values) -> AtPoints {
        return [&](Index end, std::span<const Index> points, std::span<double> out) {
          ++calls;
          most = std::max(most, static_cast<Index>(points.size()));
          values(end, points, out);
        };
      };
      const RayValues times{counted(problem.times.from_source), counted(problem.times.to_receiver)};
      KirchhoffOptions options;
      if (at_once > 0) options.table_bytes = at_once * ends * Index{sizeof(double)};
      const auto op = kirchhoff<double>(data, image, times, problem.recording, options);
      DistMatrix<double> X(grid, image.layout(3)), Y(grid, data.layout(3));
      X.set_zero();
      op->apply(1, X, 0, Y);
      op->apply_adjoint(1, Y, 0, X);
      const Index blocks = at_once == 0 ? 1 : (problem.points() + at_once - 1) / at_once;
      CHECK(calls == (at_once == 0 ? 1 : 2) * blocks * ends);
      CHECK(most == (ends == 0 ? 0 : at_once == 0 ? problem.points() : at_once));
    }
  }
}

TEST_CASE("Kirchhoff operators take images and traces of any size, also none", "[kirchhoff]") {
  for (const GridPtr& grid : compact_grids()) {
    for (const std::vector<Index>& image :
         std::vector<std::vector<Index>>{{0}, {1}, {7}, {2, 0}, {2, 3, 2}, {37, 19}}) {
      for (const Index samples : {0, 1, 2, 5, 40}) {
        const Problem problem = exact_problem({.image = image, .samples = samples});
        check_operator<double>(problem, data_space(grid, problem), image_space(grid, problem));
      }
    }
    const Problem no_sources = exact_problem({.sources = 0});
    check_operator<double>(no_sources, data_space(grid, no_sources), image_space(grid, no_sources));
    const Problem no_receivers = exact_problem({.receivers = 0});
    check_operator<double>(no_receivers, data_space(grid, no_receivers), image_space(grid, no_receivers));
    for (const Index centre : {0, 4, 9}) {
      Problem long_wavelet = exact_problem({.samples = 6});
      long_wavelet.recording = {
          .interval = 0.5, .wavelet = {1, -2, 0, 3, 1, -1, 2, 4, -3, 1}, .centre = centre};
      check_operator<double>(long_wavelet, data_space(grid, long_wavelet), image_space(grid, long_wavelet));
    }
  }
}

TEMPLATE_TEST_CASE("Kirchhoff operators take traces in groups, and points in pieces", "[kirchhoff]", double,
                   std::complex<float>) {
  const GridPtr grid = all_grids().front();
  const Problem problem = exact_problem({.image = {41, 27}, .sources = 7, .receivers = 6, .samples = 9});
  check_operator<TestType>(problem, data_space(grid, problem), image_space(grid, problem));
}

TEMPLATE_LIST_TEST_CASE("Tables take the memory that the header states", "[kirchhoff]", Scalars) {
  using T = TestType;
  constexpr Index real = sizeof(Real<T>);
  Problem problem = problem_of_pairs(weighted_problem(2));
  const auto backend = std::make_shared<MeteredBackend>(make_backend());
  const GridPtr grid = grids_of({GridShape{world().size(), 1}}, [&] { return backend; }).front();
  const Space data = data_space(grid, problem), image = image_space(grid, problem);
  const Range traces = data.local_box()[0];
  std::vector<bool> sources(at(problem.sources)), receivers(at(problem.receivers));
  for (Index k = traces.begin; k < traces.end(); ++k)
    sources[at(problem.pairs[at(k)].source)] = receivers[at(problem.pairs[at(k)].receiver)] = true;
  const Index ends =
      std::count(sources.begin(), sources.end(), true) + std::count(receivers.begin(), receivers.end(), true);
  DistMatrix<T> X(grid, image.layout(1)), Y(grid, data.layout(1));
  X.set_zero();
  // A second operator finds the scratch memory of the grid. Beside the tables it takes the columns and the
  // wavelet, and if it calls the caller's functions in products, room for its results.
  const auto first = operator_of<T>(problem, data, image);
  first->apply(1, X, 0, Y);
  const Index wavelet = real * static_cast<Index>(problem.recording.wavelet.size());
  for (const Index points : {problem.points(), Index{5}}) {
    const bool keeps_tables = points == problem.points();
    if (!keeps_tables) problem.options.table_bytes = points * 3 * ends * real + real;
    const Index before = backend->bytes_in_use();
    const auto second = operator_of<T>(problem, data, image);
    second->apply(1, X, 0, Y);
    CHECK(backend->bytes_in_use() - before == points * 3 * ends * real + 16 * traces.size + wavelet +
                                                  (keeps_tables ? 0 : Y.local().size() * Index{sizeof(T)}));
  }
}

TEST_CASE("Waves that do not arrive say nothing, whatever the image holds there", "[kirchhoff]") {
  Problem problem;
  problem.image = {3};
  problem.sources = problem.receivers = 1;
  // The second point is heard half a sample before the last, the others too late or never.
  problem.times = tabulated_rays(3, {4, 3.5, infinity}, {0, 0.25, 0});
  for (const GridPtr& grid : compact_grids()) {
    const Space image = image_space(grid, problem), data = data_space(grid, problem);
    const auto op = operator_of<double>(problem, data, image);
    DistMatrix<double> X(grid, image.layout(1)), Y(grid, data.layout(1));
    X.fill([](Index i, Index) { return i == 1 ? 2.0 : std::numeric_limits<double>::quiet_NaN(); });
    op->apply(1, X, 0, Y);
    CHECK(mismatches(Y, [&](Index k, Index) { return 2 * element(problem, 0, 0, k, 1); }) == 0);
    Y.fill([](Index k, Index) { return static_cast<double>(k); });
    op->apply_adjoint(1, Y, 0, X);
    CHECK(mismatches(X, [&](Index i, Index) {
            double sum = 0;
            for (Index k = 0; k < problem.samples; ++k)
              sum += i == 1 ? element(problem, 0, 0, k, 1) * static_cast<double>(k) : 0;
            return sum;
          }) == 0);
  }
}

TEMPLATE_TEST_CASE("Straight rays take as long as they are", "[kirchhoff]", float, double) {
  using T = TestType;
  Problem problem{.image = {7, 5}, .sources = 4, .receivers = 2, .samples = 30};
  const ImageAxes axes{{-3, 1}, {2, 1.5}};
  std::vector<Position> sources, receivers;
  for (Index s = 0; s < problem.sources; ++s) sources.push_back({2.3 * static_cast<double>(s), -0.5});
  for (Index r = 0; r < problem.receivers; ++r) receivers.push_back({1 + static_cast<double>(r), 0.25});
  const double velocity = 1.7;
  problem.times = straight_rays(problem.image, axes, sources, receivers, velocity);
  problem.recording = {.interval = 0.6, .wavelet = {0.1, 1.3, -0.7}, .centre = 1};
  const auto time = [&](const Position& end, Index point) {
    const double x = -3 + 2 * static_cast<double>(point / 5), z = 1 + 1.5 * static_cast<double>(point % 5);
    return std::hypot(x - end[0], z - end[1]) / velocity;
  };
  Problem expected = problem;
  const auto table = [&](const std::vector<Position>& ends) {
    std::vector<double> times;
    for (const Position& end : ends)
      for (Index i = 0; i < problem.points(); ++i) times.push_back(time(end, i));
    return times;
  };
  expected.times = tabulated_rays(problem.points(), table(sources), table(receivers));
  // Times of up to 30 samples are rounded a few times; the wavelet has a sum of 2.1, and α and β are below 4.
  const double bound = 1000 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (const GridPtr& grid : compact_grids()) {
    const Space data = data_space(grid, problem), image = image_space(grid, problem);
    const ElementOf<T> elements = element_of<T>(expected, data, image);
    check_elements<T>(*operator_of<T>(problem, data, image), elements, bound);
  }
}

TEST_CASE("Straight rays have an angle, a spreading and an obliquity", "[kirchhoff]") {
  // Three points below the source, the first one at the source, and three beside it: level, at 45 degrees,
  // and steeper.
  const std::vector<Index> sizes{2, 3};
  const ImageAxes axes{{0, 0}, {2, 2}};
  const std::vector<Position> ends{{0, 0}};
  const auto times = straight_rays(sizes, axes, ends, ends, 2, 50);
  const auto weights = straight_ray_weights(sizes, axes, ends, ends, 2);
  const double diagonal = std::sqrt(8.0), steep = std::sqrt(20.0);
  const std::vector<double> lengths{0, 2, 4, 2, diagonal, steep};
  const std::vector<double> cosines{1, 1, 1, 0, 2 / diagonal, 4 / steep};
  REQUIRE(weights.size() == 2);
  for (Index i = 0; i < 6; ++i) {
    CAPTURE(i);
    const double time = value_at(times.from_source, 0, i);
    CHECK(time == value_at(times.to_receiver, 0, i));
    CHECK((i == 3 ? time == infinity : std::abs(time - lengths[at(i)] / 2) < 1e-15));
    double weight = 0;
    for (const RayValues& term : weights)
      weight += value_at(term.from_source, 0, i) * value_at(term.to_receiver, 0, i);
    // Two square roots, two cosines and a division are rounded.
    CHECK(std::abs(weight - 2 * cosines[at(i)] / 2 / std::max(lengths[at(i)], 2.0)) < 1e-15);
  }
  // Sines, times the distances between neighbours, over the velocity.
  const RayValues delays = straight_ray_delays(sizes, axes, ends, ends, 2, 6, 10);
  for (Index i = 0; i < 6; ++i) {
    const double sine = std::sqrt(1 - cosines[at(i)] * cosines[at(i)]);
    CHECK(std::abs(value_at(delays.from_source, 0, i) - 3 * sine) < 1e-14);
    CHECK(std::abs(value_at(delays.to_receiver, 0, i) - 5 * sine) < 1e-14);
  }
  const std::vector<Position> above{{0, 0, 0}};
  const auto volume = straight_ray_weights({1, 1, 3}, {{0, 0, 0}, {1, 1, 1}}, above, above, 1);
  double weight = 0;
  for (const RayValues& term : volume)
    weight += value_at(term.from_source, 0, 2) * value_at(term.to_receiver, 0, 2);
  CHECK(weight == 0.5);  // 2/2²
}

TEST_CASE("Demigration moves nothing, and an iteration of CGLS reduces one image and its scalars",
          "[kirchhoff]") {
  const Problem problem = exact_problem();
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space data = data_space(grid, problem, 0, Axis::all), image = image_space(grid, problem);
    const auto op = operator_of<double>(problem, data, image);
    DistMatrix<double> X(grid, image.layout(2)), Y(grid, data.layout(2));
    X.fill(integers<double>(1, X.rows(), 2));
    Y.fill(integers<double>(2, Y.rows(), 2));
    op->apply(1, X, 0, Y);
    op->apply_adjoint(1, Y, 0, X);
    {
      const TrafficSince forward(grid->comm());
      op->apply(1, X, 0, Y);
      CHECK(forward.nothing());
    }
    {
      const TrafficSince adjoint(grid->comm());
      op->apply_adjoint(1, Y, 0, X);
      CHECK(adjoint.calls() == 1);
      CHECK(adjoint.calls(CommOperation::all_reduce) == 1);
    }
    const auto calls_of = [&](Index iterations) {
      const TrafficSince solving(grid->comm());
      SolveOptions options;
      options.max_iterations = iterations;
      options.tolerance = 0;
      const SolveReport report = cgls(*op, Y, X, options);
      CHECK(report.iterations == iterations);
      return solving.calls();
    };
    // The image, ‖q‖² with ‖p‖², and the norms of s, r and x.
    CHECK(calls_of(5) - calls_of(3) == 2 * 3);
  }
}

TEST_CASE("Traces along all ranks are scattered over a grid row, and gathered there", "[kirchhoff]") {
  const Problem problem = exact_problem();
  constexpr Index nrhs = 2, size = sizeof(double);
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || grid->cols() == 1) continue;
    const Space data = data_space(grid, problem, 0, Axis::all),
                image = image_space(grid, problem, 0, Axis::grid_cols);
    const auto op = operator_of<double>(problem, data, image);
    DistMatrix<double> X(grid, image.layout(nrhs)), Y(grid, data.layout(nrhs));
    X.fill(integers<double>(1, X.rows(), nrhs));
    op->apply(1, X, 0, Y);
    op->apply_adjoint(1, Y, 0, X);
    Index sources = 0;  // of this grid row
    for (int col = 0; col < grid->cols(); ++col)
      sources += data.dims.block(grid->part_at(Axis::all, grid->my_row(), col))[0].size;
    const Index source = problem.receivers * problem.samples * nrhs * size, own = data.local_box()[0].size;
    {
      const TrafficSince forward(grid->comm());
      op->apply(1, X, 0, Y);
      CHECK(forward.calls() == 1);
      CHECK(forward.sent() == (sources - own) * source);
    }
    {
      const TrafficSince adjoint(grid->comm());
      op->apply_adjoint(1, Y, 0, X);
      CHECK(adjoint.calls(CommOperation::all_gather) == 1);
      CHECK(adjoint.calls(CommOperation::all_reduce) == 1);
      CHECK(adjoint.calls() == 2);
      if (grid->rows() == 1) CHECK(adjoint.sent() == own * (grid->cols() - 1) * source);
    }
  }
}

TEST_CASE("Kirchhoff operators refuse what cannot be", "[kirchhoff]") {
  const Problem problem = exact_problem();
  for (const GridPtr& grid : compact_grids()) {
    const Space data = data_space(grid, problem), image = image_space(grid, problem);
    const auto make = [&](const Space& range, const Space& domain, const Recording& recording) {
      return kirchhoff<double>(range, domain, problem.times, recording);
    };
    const auto text_of = [&](auto&&... arguments) {
      return message_of<UsageError>([&] { make(arguments...); });
    };
    CHECK(contains(text_of(array_space(grid, {3}, 0), image, problem.recording), "traces x samples"));
    CHECK(contains(message_of<ShapeError>([&] {
                     kirchhoff<float>(array_space(grid, {1, 1, (Index{1} << 24) + 1}, 0), image,
                                      problem.times, problem.recording);
                   }),
                   "traces have 16777217 samples"));
    CHECK(contains(text_of(image, data, problem.recording), "are not sources x receivers x samples"));
    CHECK(contains(text_of(data_space(grid, problem, 2), image, problem.recording), "whole traces") ==
          (grid->rows() > 1));
    CHECK(contains(text_of(data, image, Recording{0, {1}, 0}), "the interval between samples is 0"));
    CHECK(contains(text_of(data, image, Recording{1, {1, 2}, 2}),
                   "a wavelet of 2 samples has no sample number 2"));
    CHECK(contains(text_of(data, image, Recording{1, {}, 0}), "a wavelet of 0 samples"));
    for (const Index widest : {0, 1025})
      CHECK(contains(message_of<UsageError>([&] {
                       kirchhoff<double>(data, image, problem.times, problem.recording,
                                         {.spread = Spread{problem.times, widest}});
                     }),
                     "is spread is " + std::to_string(widest) + " samples; it must be 1 to 1024"));
    CHECK(contains(message_of<UsageError>([] {
                     straight_ray_delays({2}, {{0}, {1}}, {}, {}, 1, 1, -2);
                   }),
                   "the distance between neighbours is -2"));
    CHECK(contains(message_of<UsageError>([] {
                     straight_rays({2}, {{0}, {1}}, {}, {}, 0);
                   }),
                   "the velocity of waves is 0"));
    CHECK(contains(message_of<ShapeError>([] {
                     straight_rays({2, 2}, {{0, 0}, {1, 1}}, {{1}}, {}, 1);
                   }),
                   "a source has 1 coordinates, but the image has 2 dimensions"));
  }
}

TEST_CASE("A travel time that one rank finds impossible is an error of all", "[kirchhoff]") {
  const Problem problem = exact_problem();
  for (const GridPtr& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Space data = data_space(grid, problem, 0, Axis::all), image = image_space(grid, problem);
    RayValues times = problem.times;
    times.from_source = [&](Index s, std::span<const Index> points, std::span<double> values) {
      problem.times.from_source(s, points, values);
      for (std::size_t i = 0; i < points.size(); ++i)
        if (s == problem.sources - 1 && points[i] == 2) values[i] = -1;
    };
    RayValues weights = problem.times;
    weights.to_receiver = [](Index, std::span<const Index>, std::span<double> values) {
      std::fill(values.begin(), values.end(), infinity);
    };
    DistMatrix<double> X(grid, image.layout(1)), Y(grid, data.layout(1));
    X.set_zero();
    const int failing = std::min(grid->comm().size(), static_cast<int>(problem.sources)) - 1;
    for (const Index bytes : {KirchhoffOptions{}.table_bytes, Index{100}}) {
      const auto op = kirchhoff<double>(data, image, times, problem.recording, {{}, bytes});
      check_agreed<UsageError>(
          *grid, failing,
          "the travel time between source 4 and point 2 is -1; it must be 0 or more, or infinite",
          [&] { op->apply(1, X, 0, Y); });
    }
    const auto op = kirchhoff<double>(data, image, problem.times, problem.recording, {{weights}});
    CHECK(contains(message_of<UsageError>([&] { op->apply(1, X, 0, Y); }), "is inf; it must be finite"));
    RayValues delays = spread_problem(3, problem).options.spread->delays;
    delays.to_receiver = [](Index, std::span<const Index>, std::span<double> values) {
      std::fill(values.begin(), values.end(), -2);
    };
    const auto spread =
        kirchhoff<double>(data, image, problem.times, problem.recording, {.spread = Spread{delays}});
    CHECK(contains(message_of<UsageError>([&] { spread->apply(1, X, 0, Y); }),
                   "the delay between receiver 0 and point 0 is -2; it must be 0 or more, and finite"));
  }
}
