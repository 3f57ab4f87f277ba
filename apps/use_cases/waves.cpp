// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/waves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "gridlops/base/random.hpp"

namespace gridlops::program {

namespace {

struct Reflector {
  double depth, strength;  // depth in metres, below the receivers
};
constexpr std::array<Reflector, 4> reflectors{{{300, 1}, {500, -0.6}, {700, 0.5}, {900, 0.3}}};
/// How far an image is moved sideways, per metre of depth.
constexpr double dip = 0.1;

/// The stations in a line of a grid that is as near to a square as its number allows.
Index square_side(Index count) {
  auto side = static_cast<Index>(std::sqrt(static_cast<double>(count)));
  while (side * side < count) ++side;
  return std::max(side, Index{1});
}

/// A pseudo-random number with a normal distribution of variance 1 (Box, Muller, Ann. Math. Stat. 29, 1958).
double normal_random(std::uint64_t seed, Index i, Index j) {
  const double u = (1 + counter_uniform(seed, i, 2 * j)) / 2, v = counter_uniform(seed, i, 2 * j + 1);
  return std::sqrt(-2 * std::log(u)) * std::cos(std::numbers::pi * v);
}

/// Stations in lines, centred on the origin.
std::vector<Station> grid_of_stations(Index count, Index line, double spacing) {
  const auto centred = [spacing](Index k, Index number) {
    return spacing * (static_cast<double>(k) - static_cast<double>(number - 1) / 2);
  };
  const Index lines = (count + line - 1) / line;
  std::vector<Station> stations;
  for (Index k = 0; k < count; ++k)
    stations.push_back({centred(k / line, lines), centred(k % line, std::min(line, count))});
  return stations;
}

}  // namespace

void WaveArguments::define(Options& options) {
  options.group("Waves (--kind waves)");
  options.number("--frequency", frequency, "F", 0, "Frequency in Hz [30]");
  options.number("--velocity", velocity, "C", 0, "Velocity in m/s [1800]");
  options.number("--spacing", spacing, "H", 0, "Distance of neighbouring stations in m [15]");
  options.number("--jitter", jitter, "S", 0, "Standard deviation of the sources' places in m [2]");
  options.whole("--row-line", row_line, "N", 1, "Sources (rows) in a line [nearly square]");
  options.whole("--col-line", col_line, "N", 1, "Receivers (columns) in a line [nearly square]");
}

const char* WaveArguments::given() const {
  return frequency      ? "--frequency"
         : velocity     ? "--velocity"
         : spacing      ? "--spacing"
         : jitter       ? "--jitter"
         : row_line > 0 ? "--row-line"
         : col_line > 0 ? "--col-line"
                        : nullptr;
}

Waves::Waves(const WaveArguments& arguments, Index rows, Index cols, std::uint64_t seed) {
  const double frequency = arguments.frequency.value_or(30), velocity = arguments.velocity.value_or(1800),
               spacing = arguments.spacing.value_or(15), jitter = arguments.jitter.value_or(2);
  const Index row_line = arguments.row_line > 0 ? arguments.row_line : square_side(rows),
              col_line = arguments.col_line > 0 ? arguments.col_line : square_side(cols);
  wave_number_ = 2 * std::numbers::pi * frequency / velocity;
  // No two stations are further apart: a normal number of 53 random bits is below 9.
  double farthest = 2 * reflectors.back().depth + 18 * jitter;
  for (const auto& [count, line] : {std::pair{rows, row_line}, {cols, col_line}})
    farthest += spacing * static_cast<double>(std::min(line, count) + (count - 1) / line);
  constexpr double most = 0x1p30;  // radians, of which double precision leaves 22 bits behind the point
  if (!(wave_number_ * farthest <= most)) {
    throw UsageError(fmt::format(
        "over {:.3g} m, a wave of {} Hz at {} m/s has a phase of {:.3g} radians, which cannot be computed; "
        "take a lower --frequency, a higher --velocity, or a smaller --spacing",
        farthest, frequency, velocity, wave_number_ * farthest));
  }
  sources_ = grid_of_stations(rows, row_line, spacing);
  receivers_ = grid_of_stations(cols, col_line, spacing);
  for (Index i = 0; i < rows; ++i)
    for (const Index k : {0, 1})
      sources_[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] +=
          jitter * normal_random(seed, i, k);
}

std::complex<double> Waves::at(Index i, Index j) const {
  const auto [source_x, source_y] = source(i);
  const auto [receiver_x, receiver_y] = receiver(j);
  std::complex<double> sum = 0;
  for (const auto& [depth, strength] : reflectors) {
    const double r = std::hypot(source_x - receiver_x + dip * depth, source_y - receiver_y, 2 * depth);
    const double phase = std::fmod(wave_number_ * r, 2 * std::numbers::pi);
    sum += strength / r * std::polar(1.0, -phase);
  }
  return sum;
}

}  // namespace gridlops::program
