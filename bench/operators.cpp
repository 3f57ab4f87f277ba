// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "command_line/grid.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "machine/machine_file.hpp"

namespace gridlops::bench {

namespace {

/// The operators on arrays, with the sizes of the use cases that need them.
const std::vector<std::string>& operator_names() {
  static const std::vector<std::string> names{
      "derivative",  "laplacian",     "gradient", "convolution", "nonstationary", "wavelets", "filters",
      "restriction", "interpolation", "matrix",   "fourier",     "fredholm",      "kirchhoff"};
  return names;
}

struct OperatorArguments {
  std::vector<std::string> operators = operator_names();
  std::vector<Index> nrhs{1};
  std::vector<Index> samples;  ///< empty: those of the use case
  Index lines = 3000;
  std::vector<Index> array;                  ///< empty: lines
  std::vector<Index> kernel{400, 201, 121};  ///< that of `gridlops mdd`
  bool groups = false;
  std::string device = "cpu", transport = "auto";
  Method method;
};

using Grid = std::shared_ptr<const ProcessGrid>;

/// An operator, and the least that a product with it needs: real additions and multiplications, and the bytes
/// of the operands and of the operator.
template <Scalar T>
struct Subject {
  std::string operation, sizes;
  OperatorPtr<T> op;
  double flops_per_column = 0;
  double operator_bytes = 0;

  Work work(Index columns) const {
    const double elements = static_cast<double>(op->rows() + op->cols());
    return {static_cast<double>(columns) * flops_per_column,
            static_cast<double>(columns) * elements * sizeof(T) + operator_bytes};
  }
};

template <Scalar T>
void measure(ResultWriter& writer, LimitMeter& meter, const Grid& grid, const Subject<T>& subject,
             const OperatorArguments& arguments) {
  for (const Index columns : arguments.nrhs) {
    const auto random = [&](const Space& space) {
      DistMatrix<T> matrix = allocate_matrix<T>(grid, space.layout(columns));
      matrix.fill([](Index i, Index j) { return T(static_cast<Real<T>>(1 + (i + 7 * j) % 11)); });
      return matrix;
    };
    DistMatrix<T> X = random(subject.op->domain()), Y = random(subject.op->range());
    for (const bool adjoint : {false, true}) {
      const auto apply = [&] {
        if (adjoint) {
          subject.op->apply_adjoint(T(1), Y, T(0), X);
        } else {
          subject.op->apply(T(1), X, T(0), Y);
        }
        grid->backend()->synchronize();
      };
      writer.add(OperatorResult{subject.operation, subject.sizes, columns, adjoint,
                                samples<T>(*grid, meter, arguments.method.repetitions, apply),
                                subject.work(columns)});
    }
  }
}

/// The array of `gridlops poststack`: lines, traces, samples, cut along the lines.
const std::vector<Index> section{20, 267, 550};

Subject<double> on_section(const Grid& grid, const std::string& name) {
  const Space space = array_space(grid, section, 0);
  const double elements = static_cast<double>(space.dimension());
  const auto subject = [&](OperatorPtr<double> op, double flops) {
    return Subject<double>{name, "20x267x550", std::move(op), flops * elements};
  };
  if (name == "derivative")
    return subject(band_operator<double>(space, 0, second_derivative(section[0])), 2 * 3);
  if (name == "laplacian") return subject(laplacian<double>(space, {{0}, {1}, {2}}), 3 * 2 * 3);
  if (name == "gradient")
    return subject(gradient<double>(space, {1, 1, 1}, Derivative::Kind::forward), 3 * 2 * 2);
  const std::vector<double> wavelet(41, 1.0);
  const double flops = 2 * static_cast<double>(wavelet.size());
  if (name == "nonstationary")
    return subject(band_operator<double>(space, 2,
                                         nonstationary_convolution(section[2], {wavelet, wavelet, wavelet},
                                                                   {100, 300, 500}, 20)),
                   flops);
  return subject(band_operator<double>(space, 2, convolution(section[2], wavelet, 20)), flops);
}

/// That array with a wavelet for each trace, or two of its lines with one for each trace and sample.
Subject<double> by_lines(const Grid& grid, const std::string& name) {
  const bool has_rows = name == "filters";
  const Index lines = has_rows ? 2 : section[0], samples = section[2];
  const Space space = array_space(grid, {lines, section[1], samples}, 0);
  const std::vector<double> wavelet(41, 1.0);
  const Band band = has_rows ? nonstationary_convolution(samples, {wavelet, wavelet}, {100, 500}, 20)
                             : convolution(samples, wavelet, 20);
  const auto weights = static_cast<double>(lines * section[1] * (has_rows ? samples : 1) * 41);
  return {name, fmt::format("{}x267x550", lines),
          band_operator<double>(space, 2, LineBands{20, 20, [&](Index) { return band; }}),
          2 * 41 * static_cast<double>(space.dimension()), weights * sizeof(double)};
}

/// That array, of which an operator takes samples: half of them at irregular places, as many values between
/// them, or 64 sums of all of them.
Subject<double> sampling(const Grid& grid, const std::string& name) {
  const Space space = array_space(grid, section, 0);
  const Index n = section[2];
  const auto traces = static_cast<double>(section[0] * section[1]);
  if (name == "matrix") {
    constexpr Index sums = 64;
    const std::vector<double> matrix(static_cast<std::size_t>(sums * n), 1.0);
    return {name, "20x267x550", matrix_along<double>(space, 2, {matrix.data(), sums, n}),
            2 * traces * static_cast<double>(sums * n), static_cast<double>(sums * n) * sizeof(double)};
  }
  std::vector<Index> indices;
  std::vector<double> positions;
  for (Index i = 0; i + 1 < n; ++i) {
    if (counter_random<double>(1, i, 0) < 0) continue;
    indices.push_back(i);
    positions.push_back(static_cast<double>(i) + 0.3);
  }
  if (name == "restriction") return {name, "20x267x550", restriction<double>(space, 2, indices)};
  return {name, "20x267x550", interpolation<double>(space, 2, positions),
          3 * traces * static_cast<double>(positions.size())};
}

/// The traces of `gridlops mdd`, whole on every rank. A transform of n samples counts as 5/2 n log₂ n
/// operations.
Subject<double> traces(const Grid& grid) {
  constexpr Index samples = 1599, count = 121;
  const Space space = array_space(grid, {samples, count}, 1);
  return {"fourier", "1599x121", real_fourier<double>(space, 0),
          2.5 * samples * std::log2(static_cast<double>(samples)) * count};
}

/// Lines of n samples in single precision, one after the other, cut between lines.
Subject<float> lines_of(const Grid& grid, Index lines, Index n) {
  const Space space = array_space(grid, {lines, n}, 0);
  const auto samples = static_cast<double>(n);
  return {"fourier", fmt::format("{}x{} f32", lines, n), real_fourier<float>(space, 1),
          2.5 * samples * std::log2(samples) * static_cast<double>(lines)};
}

/// An array, cut along its first dimension and transformed along all of them.
Subject<std::complex<double>> whole_array(const Grid& grid, const std::vector<Index>& sizes) {
  const Space space = array_space(grid, sizes, 0);
  std::vector<FourierAxis> axes(sizes.size());
  std::string shape;
  for (std::size_t dim = 0; dim < axes.size(); ++dim) {
    axes[dim].dim = static_cast<int>(dim);
    shape += fmt::format("{}{}", dim == 0 ? "" : "x", sizes[dim]);
  }
  const auto elements = static_cast<double>(space.dimension());
  return {"fourier", shape + " c128", fourier<double>(space, std::move(axes)),
          5 * elements * std::log2(elements)};
}

/// The slices of nx × ny that `sizes` name, of an operator that multiplies them.
Subject<std::complex<float>> of_slices(const char* name, const std::vector<Index>& sizes,
                                       OperatorPtr<std::complex<float>> op) {
  const auto elements = static_cast<double>(sizes[0] * sizes[1] * sizes[2]);
  return {name, fmt::format("{}x{}x{}", sizes[0], sizes[1], sizes[2]), std::move(op), 8 * elements,
          elements * sizeof(std::complex<float>)};
}

std::complex<float> kernel_element(Index i, Index) { return {1 / static_cast<float>(1 + i % 1000), 1}; }

/// An integral over slices, cut along the slices.
Subject<std::complex<float>> integral(const Grid& grid, const std::vector<Index>& sizes) {
  using T = std::complex<float>;
  const Space kernel = array_space(grid, {sizes[0], sizes[2], sizes[1]}, 0);
  DistMatrix<T> G = allocate_matrix<T>(grid, kernel.layout(1));
  G.fill(kernel_element);
  return of_slices("fredholm", sizes, fredholm<T>(kernel, std::move(G)));
}

/// Slices that groups of ranks share, as `gridlops mdd --groups` divides them for this number of right-hand
/// sides.
Subject<std::complex<float>> grouped_integral(const Grid& grid, const std::vector<Index>& sizes, Index nrhs) {
  using T = std::complex<float>;
  const std::vector<ProductShape> slices(static_cast<std::size_t>(sizes[0]),
                                         {sizes[1], sizes[2], nrhs, scalar_type_of<T>});
  Communicator& comm = grid->comm();
  const MachineModel machine =
      with_shared_memory(program::model_of(program::read_machine(comm, ""), comm), *grid);
  const SliceGroups groups(grid, slices, divide_ranks(slices, comm.size(), machine));
  std::vector<DistMatrix<T>> G = allocate_slices<T>(groups);
  for (DistMatrix<T>& slice : G) slice.fill(kernel_element);
  const MatrixMultOptions options{.storage = faster_storage(groups)};
  return of_slices("grouped_slices", sizes, grouped_slices<T>(groups, std::move(G), options));
}

/// The migration of `gridlops lsm`, sources cut over the ranks. Each point of a trace takes 5 operations for
/// its arrival and 4 for its echo. Each sample that waves reach takes a product with the wavelet.
Subject<double> migration(const Grid& grid) {
  constexpr Index sources = 10, receivers = 11, samples = 651, nx = 81, nz = 60, half = 40;
  constexpr double spacing = 4, velocity = 1000, interval = 0.004, first = 40, last = 284;
  const auto line = [](Index count, double depth) {
    std::vector<Position> positions;
    for (Index k = 0; k < count; ++k)
      positions.push_back(
          {first + (last - first) * static_cast<double>(k) / static_cast<double>(count - 1), depth});
    return positions;
  };
  const RayValues times =
      straight_rays({nx, nz}, {{0, 0}, {spacing, spacing}}, line(sources, 10), line(receivers, 20), velocity);
  const std::vector<double> wavelet(2 * half + 1, 1.0);
  std::vector<Index> points(nx * nz);
  std::iota(points.begin(), points.end(), Index{0});
  std::vector<double> there(points.size()), back(points.size());
  double flops = 0;
  for (Index s = 0; s < sources; ++s) {
    times.from_source(s, points, there);
    for (Index r = 0; r < receivers; ++r) {
      times.to_receiver(r, points, back);
      double least = std::numeric_limits<double>::infinity(), most = 0;
      for (std::size_t i = 0; i < points.size(); ++i) {
        least = std::min(least, there[i] + back[i]);
        most = std::max(most, there[i] + back[i]);
      }
      flops += 9 * nx * nz + 2 * static_cast<double>(wavelet.size()) * (most - least) / interval;
    }
  }
  const Space image = array_space(grid, {nx, nz}, 0, Axis::uncut);
  const Space data = array_space(grid, {sources, receivers, samples}, 0);
  return {"kirchhoff", "10x11x4860", kirchhoff<double>(data, image, times, {interval, wavelet, half}), flops,
          static_cast<double>((sources + receivers) * nx * nz) * sizeof(double)};
}

ExitStatus operators(Communicator& world, const OperatorArguments& arguments) {
  if (arguments.kernel.size() != 3) throw UsageError("--kernel needs three sizes: slices, nx, ny");
  ResultWriter writer(world, arguments.method.json);
  LimitMeter meter(arguments.method.limit_order, arguments.method.limit_mib);
  const Grid grid =
      program::make_grid(world, GridShape{world.size(), 1}, arguments.device, arguments.transport);
  for (const std::string& name : arguments.operators) {
    if (name == "fredholm" && arguments.groups) {
      measure(writer, meter, grid, grouped_integral(grid, arguments.kernel, std::ranges::max(arguments.nrhs)),
              arguments);
    } else if (name == "fredholm") {
      measure(writer, meter, grid, integral(grid, arguments.kernel), arguments);
    } else if (name == "fourier" && !arguments.array.empty()) {
      measure(writer, meter, grid, whole_array(grid, arguments.array), arguments);
    } else if (name == "fourier" && arguments.samples.empty()) {
      measure(writer, meter, grid, traces(grid), arguments);
    } else if (name == "fourier") {
      for (const Index n : arguments.samples)
        measure(writer, meter, grid, lines_of(grid, arguments.lines, n), arguments);
    } else if (name == "kirchhoff") {
      measure(writer, meter, grid, migration(grid), arguments);
    } else if (name == "restriction" || name == "interpolation" || name == "matrix") {
      measure(writer, meter, grid, sampling(grid, name), arguments);
    } else if (name == "wavelets" || name == "filters") {
      measure(writer, meter, grid, by_lines(grid, name), arguments);
    } else {
      measure(writer, meter, grid, on_section(grid, name), arguments);
    }
  }
  return writer.close();
}

}  // namespace

Action define_operators(Options& options) {
  const auto arguments = std::make_shared<OperatorArguments>();
  options.choices("--operator", arguments->operators, words(operator_names()), "Operators [all]");
  options.numbers("--rhs", arguments->nrhs, "R[,...]", "Right-hand sides [1]");
  options.numbers("--samples", arguments->samples, "N[,...]",
                  "Lengths of lines in f32 that fourier transforms, instead of the use case's");
  options.whole("--lines", arguments->lines, "L", 1, "How many of these lines [3000]");
  options.numbers("--array", arguments->array, "N,...",
                  "Sizes of an array in c128 that fourier transforms along all dimensions, instead of these");
  options.numbers("--kernel", arguments->kernel, "F,X,Y",
                  "Slices of fredholm, and their sizes [400,201,121]");
  options.flag("--groups", arguments->groups, "Groups of ranks share these slices");
  options.choice("--device", arguments->device, words({"cpu", "gpu"}), "Where they run [cpu]");
  options.choice("--transport", arguments->transport, program::transports(), "What carries the data [auto]");
  define_method(options, arguments->method);
  explain_columns_of_operators(options);
  return [arguments](Communicator& world) { return operators(world, *arguments); };
}

}  // namespace gridlops::bench
