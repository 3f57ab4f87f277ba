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

double wave_number(const WaveSetting& setting) {
  return 2 * std::numbers::pi * setting.frequency / setting.velocity;
}

}  // namespace

void WaveArguments::define(Options& options) {
  options.group("Waves");
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

WaveSetting WaveArguments::setting(Index rows, Index cols) const {
  const WaveSetting all{frequency.value_or(30),
                        velocity.value_or(1800),
                        spacing.value_or(15),
                        jitter.value_or(2),
                        row_line > 0 ? row_line : square_side(rows),
                        col_line > 0 ? col_line : square_side(cols)};
  // No two stations are further apart: a normal number of 53 random bits is below 9.
  double farthest = 2 * reflectors.back().depth + 18 * all.jitter;
  for (const auto& [count, line] : {std::pair{rows, all.row_line}, {cols, all.col_line}})
    farthest += all.spacing * static_cast<double>(std::min(line, count) + (count - 1) / line);
  const double phase = wave_number(all) * farthest;
  constexpr double most = 0x1p30;  // radians, of which double precision leaves 22 bits behind the point
  if (phase <= most) return all;
  throw UsageError(fmt::format(
      "over {:.3g} m, a wave of {} Hz at {} m/s has a phase of {:.3g} radians, which cannot be computed; "
      "take a lower --frequency, a higher --velocity, or a smaller --spacing",
      farthest, all.frequency, all.velocity, phase));
}

Waves::Waves(const WaveSetting& setting, Index rows, Index cols, std::uint64_t seed)
    : wave_number_(wave_number(setting)),
      sources_(grid_of_stations(rows, setting.row_line, setting.spacing)),
      receivers_(grid_of_stations(cols, setting.col_line, setting.spacing)) {
  for (Index i = 0; i < rows; ++i)
    for (const Index k : {0, 1})
      sources_[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)] +=
          setting.jitter * normal_random(seed, i, k);
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
