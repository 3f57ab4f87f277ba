// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numbers>
#include <set>
#include <tuple>
#include <vector>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/base/random.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "subcommands.hpp"
#include "use_cases/waves.hpp"

namespace gridlops::program {

namespace {

// Elements are pure functions of the arguments and the global index, so a problem does not depend on the
// ranks that made it. All types compute in double precision.

enum class Kind { random, spd, multiples, waves };
const Names<Kind> kinds{
    {"random", Kind::random}, {"spd", Kind::spd}, {"multiples", Kind::multiples}, {"waves", Kind::waves}};

struct MakeProblemArguments {
  Index rows = 0, cols = 0, nrhs = 0;
  std::optional<ScalarType> type;
  Kind kind = Kind::random;
  std::optional<double> condition;
  double noise = 0;
  std::uint64_t seed = 1;
  WaveArguments waves;
  std::string directory;

  bool has_phases() const { return kind == Kind::multiples || kind == Kind::waves; }
};

std::string name_of(Kind kind) {
  for (const auto& [name, value] : kinds)
    if (value == kind) return name;
  return {};
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

ScalarType type_of(const MakeProblemArguments& arguments) {
  return arguments.type.value_or(arguments.has_phases() ? ScalarType::c128 : ScalarType::f64);
}

/// Throws UsageError if the arguments contradict each other, or ask for more memory than can be addressed.
void check(const MakeProblemArguments& arguments) {
  const ScalarType type = type_of(arguments);
  const std::string kind = name_of(arguments.kind);
  if (arguments.has_phases() && (type == ScalarType::f32 || type == ScalarType::f64)) {
    throw UsageError(
        fmt::format("--dtype {} cannot hold the kind {}, whose waves have phases; take c64 or c128",
                    name_of(type), kind));
  }
  if (arguments.has_phases() && arguments.condition) {
    throw UsageError(fmt::format("--condition {} cannot be had with the kind {}, whose matrix is fixed",
                                 *arguments.condition, kind));
  }
  if (const char* const option = arguments.waves.given();
      option != nullptr && arguments.kind != Kind::waves) {
    throw UsageError(fmt::format("{} is for the kind waves, and --kind is {}", option, kind));
  }
  if (arguments.kind == Kind::spd && arguments.rows != arguments.cols) {
    throw UsageError(fmt::format("the kind spd is square, but --rows is {} and --cols {}", arguments.rows,
                                 arguments.cols));
  }
  const double most = type == ScalarType::f32 || type == ScalarType::c64
                          ? 1 / std::numeric_limits<float>::epsilon()
                          : 1 / std::numeric_limits<double>::epsilon();
  if (arguments.condition && *arguments.condition > most) {
    throw UsageError(fmt::format(
        "--condition {} cannot be had with {}: rounding moves the smallest singular value by about "
        "{:.1e} of the largest, and A would have another condition; take at most {:.0f}",
        *arguments.condition, name_of(type), 1 / most, most));
  }
  const auto fits = [type](Index rows, Index cols) { return fits_file(rows, cols, type); };
  if (!fits(arguments.rows, arguments.cols) || !fits(arguments.cols, arguments.nrhs) ||
      !fits(arguments.rows, arguments.nrhs)) {
    throw UsageError(
        fmt::format("{} rows, {} columns and {} right-hand sides make matrices of more elements "
                    "than can be counted; take fewer",
                    arguments.rows, arguments.cols, arguments.nrhs));
  }
  if (arguments.kind == Kind::waves) arguments.waves.setting(arguments.rows, arguments.cols);
}

/// One seed for each purpose, so that numbers for one purpose do not depend on those for another.
enum class Purpose { matrix, model, noise, left_vector, right_vector, stations };
std::uint64_t seed_for(const MakeProblemArguments& arguments, Purpose purpose) {
  return 8 * arguments.seed + static_cast<std::uint64_t>(purpose);
}

template <Scalar T>
T rounded_to(Accumulator<T> value) {
  if constexpr (is_complex<T>) {
    return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
  } else {
    return static_cast<T>(value);
  }
}

/// A number that an element type with phases holds.
template <Scalar T>
T phased(std::complex<double> value) {
  if constexpr (is_complex<T>) {
    return rounded_to<T>(value);
  } else {
    return T(0);  // check() refuses real types
  }
}

/// A random vector of norm 1. The sum is serial, so that all ranks get the same bits.
template <class A>
std::vector<A> unit_vector(std::uint64_t seed, Index size) {
  std::vector<A> vector;
  double norm_squared = 0;
  for (Index k = 0; k < size; ++k) {
    vector.push_back(counter_random<A>(seed, k, 0));
    norm_squared += std::norm(vector.back());
  }
  for (A& element : vector) element /= std::sqrt(norm_squared);
  return vector;
}

/// Numbers from 1 to 1/condition in equal ratios.
std::vector<double> logarithmic_decay(Index count, double condition) {
  std::vector<double> values;
  for (Index k = 0; k < count; ++k) {
    values.push_back(
        std::pow(condition, count == 1 ? 0 : -static_cast<double>(k) / static_cast<double>(count - 1)));
  }
  return values;
}

/// A = (I − 2uuᴴ) Σ (I − 2vvᴴ) with random unit vectors u and v has the singular values Σ.
template <Scalar T>
void fill_conditioned(const MakeProblemArguments& arguments, DistMatrix<T>& A) {
  using C = Accumulator<T>;
  const Index count = std::min(A.rows(), A.cols());
  const auto u = unit_vector<C>(seed_for(arguments, Purpose::left_vector), A.rows());
  const auto v = unit_vector<C>(seed_for(arguments, Purpose::right_vector), A.cols());
  const std::vector<double> sigma = logarithmic_decay(count, *arguments.condition);
  C tau = 0;  // uᴴΣv
  for (std::size_t k = 0; k < sigma.size(); ++k) tau += conjugate(u[k]) * sigma[k] * v[k];
  A.fill([&](Index i, Index j) {
    C value = 4.0 * u[at(i)] * tau * conjugate(v[at(j)]);
    if (i == j) value += sigma[at(i)];
    if (j < count) value -= 2.0 * sigma[at(j)] * u[at(i)] * conjugate(u[at(j)]);
    if (i < count) value -= 2.0 * sigma[at(i)] * v[at(i)] * conjugate(v[at(j)]);
    return rounded_to<T>(value);
  });
}

/// A = (I − 2vvᴴ) Λ (I − 2vvᴴ), exactly Hermitian, has the eigenvalues Λ.
template <Scalar T>
void fill_positive_definite(const MakeProblemArguments& arguments, DistMatrix<T>& A) {
  using C = Accumulator<T>;
  const auto v = unit_vector<C>(seed_for(arguments, Purpose::right_vector), A.rows());
  const std::vector<double> lambda = logarithmic_decay(A.rows(), arguments.condition.value_or(100));
  double tau = 0;  // vᴴΛv
  for (std::size_t k = 0; k < lambda.size(); ++k) tau += lambda[k] * std::norm(v[k]);
  const auto upper = [&](Index i, Index j) {
    return v[at(i)] * conjugate(v[at(j)]) * (4 * tau - 2 * (lambda[at(i)] + lambda[at(j)]));
  };
  A.fill([&](Index i, Index j) {
    if (i == j) return rounded_to<T>(std::real(upper(i, i)) + lambda[at(i)]);
    return rounded_to<T>(i < j ? upper(i, j) : conjugate(upper(j, i)));
  });
}

/// A sine of this period, in metres.
double undulation(double position, double period, double phase = 0) {
  return std::sin(2 * std::numbers::pi * position / period + phase);
}

/// Ricker's wavelet, which is symmetric and has no mean.
double wavelet(double distance) {
  constexpr double length = 42;
  const double a = std::numbers::pi * distance / length;
  return (1 - 2 * a * a) * std::exp(-a * a);
}

struct Fault {
  double position;  // at the surface
  double run;       // metres sideways per metre of depth
  double height;    // by which it displaces the ground to its right
};

/// How much deeper the layers are here than outside the graben. The section repeats every 4 km.
double throw_at(double position, double depth) {
  constexpr Fault left{1150, +0.55, +45}, right{2950, -0.40, -60};
  double sum = 0;
  for (const Fault& fault : {left, right})
    if (std::fmod(position, 4000) > fault.position + fault.run * depth) sum += fault.height;
  return sum;
}

/// Layers of random strength and thickness; z is the depth below the first layer, before any bending.
double layers(double position, double z, std::uint64_t seed) {
  constexpr double spacing = 60;
  const auto nearest = static_cast<Index>(std::floor(z / spacing));
  double sum = 0;
  for (Index k = nearest - 2; k <= nearest + 3; ++k) {
    const double layer = spacing * (static_cast<double>(k) + 0.3 * counter_uniform(seed, k, 0));
    const double strength =
        std::copysign(0.65 + 0.35 * counter_uniform(seed, k, 1), counter_uniform(seed, k, 2));
    const double lateral = 1 + 0.25 * undulation(position, 1400 + 170 * static_cast<double>(k & 7));
    sum += strength * lateral * wavelet(z - layer);
  }
  return sum;
}

/// The base of a channel filled with other material; z is the depth below its banks.
double channel(double position, double z) {
  const double across = (position - 2050) / 420;
  if (std::fabs(across) >= 1) return 0;
  const double depth = 48 * (1 - across * across);
  return -1.1 * std::sqrt(1 - across * across) * wavelet(z - depth);
}

/// The reflectivity at a lateral position and a depth, in metres: folded layers that end at an unconformity,
/// flat layers and a channel above it, and a graben between two faults through all of them. It is of order 1,
/// and a pure function. The folds are so steep that they need all lateral wavelengths down to about 60 m.
double reflectivity(double position, double depth) {
  const double unfaulted = depth - throw_at(position, depth);
  const double upper = unfaulted - 12 * undulation(position, 2700, 0.4);
  const double folds = 90 * undulation(position, 800, 0.4) + 30 * undulation(position, 420) + 0.02 * position;
  const double below_unconformity = upper - 270 - 25 * undulation(position, 1700);
  const double is_below = std::clamp(0.5 + below_unconformity / 30, 0.0, 1.0);
  return (1 - is_below) * (layers(position, upper, 11) + channel(position, upper - 150)) +
         is_below * layers(position, unfaulted - folds, 12) + 0.8 * wavelet(below_unconformity);
}

/// A contains the wavefield of one frequency from virtual sources (columns) to receivers (rows), with four
/// internal multiples of decreasing strength. Sources and receivers lie in lines, the shorter line centred
/// under the longer.
template <Scalar T>
void fill_multiples(DistMatrix<T>& A) {
  constexpr double spacing = 10, wave_number = 2 * std::numbers::pi / 20;
  constexpr double first_depth = 100, depth_per_multiple = 150, strength = -0.8;
  constexpr int terms = 5;
  const double shift = static_cast<double>(A.rows() - A.cols()) / 2;
  A.fill([&](Index i, Index j) {
    const double offset = spacing * (static_cast<double>(i - j) - shift);
    std::complex<double> sum = 0;
    double amplitude = 1;
    for (int k = 0; k < terms; ++k, amplitude *= strength) {
      const double distance = std::hypot(offset, first_depth + depth_per_multiple * k);
      const double phase = std::fmod(wave_number * distance, 2 * std::numbers::pi);
      sum += amplitude / distance * std::polar(1.0, phase);  // amplitudes are negative, and no radius may be
    }
    return phased<T>(sum);
  });
}

Waves waves_of(const MakeProblemArguments& arguments) {
  return {arguments.waves.setting(arguments.rows, arguments.cols), arguments.rows, arguments.cols,
          seed_for(arguments, Purpose::stations)};
}

/// A ← the waves, divided by the power of two that brings ‖A‖₂ nearest to 1 (collective over the grid). The
/// norm is estimated by products, whose rounding depends on the grid; a power of two does not, unless the
/// norm lies between two of them to all digits.
template <Scalar T>
void fill_waves(const Waves& waves, DistMatrix<T>& A) {
  A.fill([&](Index i, Index j) { return phased<T>(waves.at(i, j)); });
  const double norm =
      estimate_norm(*matrix_mult(Algorithm::stationary_a, DistMatrix<T>(A.grid(), A.layout(), A.local())));
  if (norm == 0) return;  // no elements
  const auto scale = static_cast<Real<T>>(std::exp2(-std::round(std::log2(norm))));
  const MatrixView<T> block = A.local();
  for (Index j = 0; j < block.cols; ++j)
    for (Index i = 0; i < block.rows; ++i) block(i, j) *= scale;
}

template <Scalar T>
void fill_matrix(const MakeProblemArguments& arguments, DistMatrix<T>& A) {
  if (arguments.kind == Kind::multiples) return fill_multiples(A);
  if (arguments.kind == Kind::waves) return fill_waves(waves_of(arguments), A);
  if (arguments.kind == Kind::spd) return fill_positive_definite(arguments, A);
  if (arguments.condition) return fill_conditioned(arguments, A);
  const std::uint64_t seed = seed_for(arguments, Purpose::matrix);
  A.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
}

template <Scalar T>
void fill_model(const MakeProblemArguments& arguments, DistMatrix<T>& X) {
  if (arguments.kind == Kind::multiples) {
    constexpr double spacing = 10;  // of positions along the line, and of depths
    X.fill([](Index position, Index depth) {
      return T(static_cast<Real<T>>(
          reflectivity(spacing * static_cast<double>(position), spacing * static_cast<double>(depth))));
    });
  } else {
    const std::uint64_t seed = seed_for(arguments, Purpose::model);
    X.fill([seed](Index i, Index j) { return counter_random<T>(seed, i, j); });
  }
}

/// To each element of a column b of m rows adds S·‖b‖/√m times a number of unit variance, where S is the
/// requested noise (collective over the grid).
template <Scalar T>
void add_noise(const MakeProblemArguments& arguments, DistMatrix<T>& B) {
  if (arguments.noise == 0 || B.rows() == 0) return;
  const std::vector<double> norms = column_norms(B);
  // A number uniform in (−1, 1) has variance 1/3.
  const double level =
      arguments.noise * std::sqrt((is_complex<T> ? 1.5 : 3.0) / static_cast<double>(B.rows()));
  const std::uint64_t seed = seed_for(arguments, Purpose::noise);
  const MatrixView<T> block = B.local();
  for (Index l = 0; l < block.cols; ++l) {
    const Index column = B.local_col_range().begin + l;
    for (Index k = 0; k < block.rows; ++k) {
      const auto number = counter_random<Accumulator<T>>(seed, B.local_row_range().begin + k, column);
      block(k, l) += rounded_to<T>(level * norms[at(column)] * number);
    }
  }
}

struct ProblemFiles {
  std::string A, B, X, rows, cols;

  explicit ProblemFiles(const std::filesystem::path& directory)
      : A(directory / "A.npy"),
        B(directory / "B.npy"),
        X(directory / "X_true.npy"),
        rows(directory / "row_positions.npy"),
        cols(directory / "col_positions.npy") {}
  /// The names of all that a problem of any kind may have.
  std::set<std::string> all() const {
    std::set<std::string> names;
    for (const std::string& file : {A, B, X, rows, cols})
      names.insert(std::filesystem::path(file).filename());
    return names;
  }
};

/// Writes the place of every row or column, in metres (collective over the grid).
template <class Place>
void write_places(const std::shared_ptr<const ProcessGrid>& grid, const std::string& file, Index count,
                  const Place& place) {
  auto places = allocate_matrix<double>(grid, row_blocks(*grid, count, std::tuple_size_v<Station>));
  places.fill([&](Index k, Index axis) { return place(k)[at(axis)]; });
  write_matrix(file, places);
}

template <Scalar T>
void make_on_grid(const MakeProblemArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid,
                  const ProblemFiles& files) {
  // A, X and B have the layouts of this algorithm.
  constexpr Algorithm algorithm = Algorithm::summa;
  DistMatrix<T> A = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.rows, arguments.cols));
  DistMatrix<T> X = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.cols, arguments.nrhs));
  DistMatrix<T> B = allocate_matrix<T>(grid, blocks_2d(*grid, arguments.rows, arguments.nrhs));
  fill_matrix(arguments, A);
  fill_model(arguments, X);
  write_matrix(files.A, A);
  write_matrix(files.X, X);
  matrix_mult(algorithm, std::move(A))->apply(T(1), X, T(0), B);
  add_noise(arguments, B);
  write_matrix(files.B, B);
  if (arguments.kind != Kind::waves) return;
  const Waves waves = waves_of(arguments);
  write_places(grid, files.rows, arguments.rows, [&](Index i) { return waves.source(i); });
  write_places(grid, files.cols, arguments.cols, [&](Index j) { return waves.receiver(j); });
}

ExitStatus make_problem(Communicator& world, const MakeProblemArguments& arguments) {
  check(arguments);
  const ProblemFiles files(arguments.directory);
  make_directory(world, arguments.directory);
  std::vector<NamedFile> outputs{{"--out", files.A}, {"--out", files.B}, {"--out", files.X}};
  if (arguments.kind == Kind::waves) {
    outputs.push_back({"--out", files.rows});
    outputs.push_back({"--out", files.cols});
  }
  check_outputs(world, {}, outputs);
  claim_folder(world, arguments.directory, "problem", files.all());
  const auto grid = make_grid(world);
  run_on_grid(world, *grid, [&] {
    with_scalar_type(type_of(arguments), [&]<Scalar T>() { make_on_grid<T>(arguments, grid, files); });
  });
  if (world.rank() == 0) {
    print(fmt::format("{}: A.npy {} x {}, X_true.npy {} x {}, B.npy {} x {} of {}\n", arguments.directory,
                      arguments.rows, arguments.cols, arguments.cols, arguments.nrhs, arguments.rows,
                      arguments.nrhs, name_of(type_of(arguments))));
  }
  return ExitStatus::done;
}

}  // namespace

Action define_make_problem(Options& options) {
  const auto arguments = std::make_shared<MakeProblemArguments>();
  MakeProblemArguments& problem = *arguments;
  options.whole("--rows", problem.rows, "M", 0, "Rows of A")->required();
  options.whole("--cols", problem.cols, "N", 0, "Columns of A")->required();
  options.whole("--rhs", problem.nrhs, "R", 0, "Right-hand sides")->required();
  options.choice("--dtype", problem.type, scalar_types(),
                 "Type of the elements [f64; multiples, waves: c128]");
  options.choice("--kind", problem.kind, kinds,
                 "Random, Hermitian positive definite, seismic internal multiples, or waves between stations "
                 "[random]");
  options.number("--condition", problem.condition, "C", 1,
                 "Condition number of A [random: as it comes; spd: 100]");
  options.number("--noise", problem.noise, "S", 0, "Noise in B, relative to each column's norm [0]");
  options.whole("--seed", problem.seed, "S", 0, "Seed of the pseudo-random numbers [1]");
  options.text("--out", problem.directory, "DIR", "Where the files go; made if missing")->required();
  problem.waves.define(options);
  options.examples(
      {"mpirun -n 4 gridlops make-problem --rows 3000 --cols 2000 --rhs 8 --out problem",
       "gridlops make-problem --rows 500 --cols 500 --rhs 2 --kind spd --condition 50 --out positive",
       "gridlops make-problem --rows 2304 --cols 2304 --rhs 1 --kind waves --frequency 10 --out waves"});
  return [arguments](Communicator& world) { return make_problem(world, *arguments); };
}

}  // namespace gridlops::program
