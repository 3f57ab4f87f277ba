// SPDX-License-Identifier: BSD-3-Clause
// Compares Kirchhoff operators with dense matrices made by the formula, element by element.
#include "gridlops/ops/kirchhoff.hpp"

#include <limits>

#include "base/numbers.hpp"
#include "gridlops/solve/solver.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"
#include "support/catch.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Sizes of a problem, its travel times and its wavelet.
struct Problem {
  std::vector<Index> image = {4, 3};
  Index sources = 5, receivers = 3, samples = 9;
  TravelTimes times{};
  Recording recording{.interval = 0.5, .wavelet = {3, -1, 2, 1}, .centre = 1};

  Index points() const {
    Index points = 1;
    for (const Index size : image) points *= size;
    return points;
  }
};

/// Times are eighths of a unit, quarters of a sample, so that products of integers are exact. Some waves
/// arrive in the last two samples, after the last, or never.
TravelTimes exact_times(const Problem& problem) {
  const auto table = [&](std::uint64_t seed, Index ends) {
    std::vector<double> times;
    for (Index end = 0; end < ends; ++end) {
      for (Index i = 0; i < problem.points(); ++i) {
        const double share = (1 + counter_uniform(seed, i, end)) / 2;
        const double longest = 0.3 * static_cast<double>(problem.samples);
        times.push_back(share < 0.05 ? infinity : std::floor(8 * share * longest) / 8);
      }
    }
    return times;
  };
  return tabulated_times(problem.points(), table(1, problem.sources), table(2, problem.receivers));
}

Problem exact_problem(Problem problem = {}) {
  problem.times = exact_times(problem);
  return problem;
}

/// How much of point i is in sample k of the trace of source s and receiver r, before the wavelet.
double arrival(const Problem& problem, Index s, Index r, Index k, Index i) {
  const double t =
      (problem.times.from_source(s, i) + problem.times.to_receiver(r, i)) / problem.recording.interval;
  const double floor = std::floor(t);
  if (!(0 <= floor && floor < static_cast<double>(problem.samples - 1))) return 0;
  const double w = t - floor, sample = static_cast<double>(k);
  return sample == floor ? 1 - w : sample == floor + 1 ? w : 0;
}

double element(const Problem& problem, Index s, Index r, Index k, Index i) {
  const std::vector<double>& f = problem.recording.wavelet;
  double sum = 0;
  for (Index j = 0; j < static_cast<Index>(f.size()); ++j) {
    const Index from = k + problem.recording.centre - j;
    if (0 <= from && from < problem.samples)
      sum += f[static_cast<std::size_t>(j)] * arrival(problem, s, r, from, i);
  }
  return sum;
}

/// The operator's element in row i and column j of its spaces.
template <Scalar T>
ElementOf<T> element_of(const Problem& problem, const Space& data, const Space& image) {
  return [&](Index i, Index j) {
    const std::vector<Index> place = place_of(data.dims, i);
    return to_scalar<T>(
        element(problem, place[0], place[1], place[2], number_of(image.dims, place_of(image.dims, j))));
  };
}

template <Scalar T>
void check_operator(const Problem& problem, const Space& data, const Space& image, double tolerance = 0) {
  INFO("from " << image.describe() << " to " << data.describe());
  check_elements<T>(*kirchhoff<T>(data, image, problem.times, problem.recording),
                    element_of<T>(problem, data, image), tolerance);
}

Space data_space(const GridPtr& grid, const Problem& problem, int cut = 0, Axis axis = Axis::grid_rows,
                 int variant = 0, Axis columns = Axis::uncut) {
  return array_space(
      grid, dims_along(*grid, {problem.sources, problem.receivers, problem.samples}, cut, axis, variant),
      axis, columns);
}

Space image_space(const GridPtr& grid, const Problem& problem, int cut = 0, Axis axis = Axis::uncut,
                  int variant = 0, Axis columns = Axis::uncut) {
  return array_space(grid, dims_along(*grid, problem.image, cut, axis, variant), axis, columns);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Kirchhoff operators are their dense matrices, however data and image are cut",
                        "[kirchhoff]", Scalars) {
  using T = TestType;
  const Problem problem = exact_problem();
  for (const GridPtr& grid : all_grids()) {
    int variant = 0;
    for (const Axis axis : all_axes) {
      for (const Axis image_axis : all_axes) {
        if (!legal(axis, image_axis)) continue;
        variant = (variant + 1) % cut_variants;
        check_operator<T>(problem, data_space(grid, problem, variant % 2, axis, variant),
                          image_space(grid, problem, (variant / 2) % 2, image_axis, variant));
      }
    }
    check_operator<T>(problem, data_space(grid, problem, 0, Axis::grid_rows, 3, Axis::grid_cols),
                      image_space(grid, problem, 0, Axis::uncut, 0, Axis::grid_cols));
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

TEST_CASE("Waves that do not arrive say nothing, whatever the image holds there", "[kirchhoff]") {
  Problem problem;
  problem.image = {3};
  problem.sources = problem.receivers = 1;
  // The second point is heard half a sample before the last, the others too late or never.
  problem.times = tabulated_times(3, {4, 3.5, infinity}, {0, 0.25, 0});
  for (const GridPtr& grid : compact_grids()) {
    const Space image = image_space(grid, problem), data = data_space(grid, problem);
    const auto op = kirchhoff<double>(data, image, problem.times, problem.recording);
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
  expected.times = {[&](Index s, Index i) { return time(sources[static_cast<std::size_t>(s)], i); },
                    [&](Index r, Index i) { return time(receivers[static_cast<std::size_t>(r)], i); }};
  // Times of up to 30 samples are rounded a few times; the wavelet has a sum of 2.1, and α and β are below 4.
  const double bound = 1000 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (const GridPtr& grid : compact_grids()) {
    const Space data = data_space(grid, problem), image = image_space(grid, problem);
    const ElementOf<T> elements = element_of<T>(expected, data, image);
    check_elements<T>(*kirchhoff<T>(data, image, problem.times, problem.recording), elements, bound);
  }
}

TEST_CASE("Demigration moves nothing, and an iteration of CGLS reduces one image and its scalars",
          "[kirchhoff]") {
  const Problem problem = exact_problem();
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Space data = data_space(grid, problem, 0, Axis::all), image = image_space(grid, problem);
    const auto op = kirchhoff<double>(data, image, problem.times, problem.recording);
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
    CHECK(contains(text_of(image, data, problem.recording), "sources x receivers x samples"));
    CHECK(contains(text_of(data_space(grid, problem, 2), image, problem.recording), "whole traces") ==
          (grid->rows() > 1));
    CHECK(contains(text_of(data, image, Recording{0, {1}, 0}), "the interval between samples is 0"));
    CHECK(contains(text_of(data, image, Recording{1, {1, 2}, 2}),
                   "a wavelet of 2 samples has no sample number 2"));
    CHECK(contains(text_of(data, image, Recording{1, {}, 0}), "a wavelet of 0 samples"));
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
    TravelTimes times = problem.times;
    times.from_source = [&](Index s, Index i) {
      return s == problem.sources - 1 && i == 2 ? -1 : problem.times.from_source(s, i);
    };
    const auto op = kirchhoff<double>(data, image, times, problem.recording);
    DistMatrix<double> X(grid, image.layout(1)), Y(grid, data.layout(1));
    X.set_zero();
    const int failing = std::min(grid->comm().size(), static_cast<int>(problem.sources)) - 1;
    check_agreed<UsageError>(
        *grid, failing,
        "the travel time between source 4 and point 2 is -1; it must be 0 or more, or infinite",
        [&] { op->apply(1, X, 0, Y); });
  }
}
