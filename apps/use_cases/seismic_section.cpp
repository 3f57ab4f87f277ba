// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/seismic_section.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "gridlops/base/random.hpp"

namespace gridlops::program {

namespace {

constexpr double pi = std::numbers::pi;

/// A sine of this period, in metres.
double wave(double position, double period, double phase = 0) {
  return std::sin(2 * pi * position / period + phase);
}

/// Ricker's wavelet, which is symmetric and has no mean.
double wavelet(double distance) {
  constexpr double length = 42;
  const double a = pi * distance / length;
  return (1 - 2 * a * a) * std::exp(-a * a);
}

struct Fault {
  double position;  // where it meets the surface
  double run;       // metres sideways per metre of depth
  double height;    // by which it throws what is to its right
};

/// How much deeper than outside the graben layers lie here. The section repeats every 4 km.
double throw_at(double position, double depth) {
  constexpr Fault left{1150, +0.55, +45}, right{2950, -0.40, -60};
  double sum = 0;
  for (const Fault& fault : {left, right})
    if (std::fmod(position, 4000) > fault.position + fault.run * depth) sum += fault.height;
  return sum;
}

/// Layers of random strength and thickness; z is the depth below the first, before anything bent them.
double layers(double position, double z, std::uint64_t seed) {
  constexpr double spacing = 60;
  const auto nearest = static_cast<Index>(std::floor(z / spacing));
  double sum = 0;
  for (Index k = nearest - 2; k <= nearest + 3; ++k) {
    const double layer = spacing * (static_cast<double>(k) + 0.3 * counter_uniform(seed, k, 0));
    const double strength =
        std::copysign(0.65 + 0.35 * counter_uniform(seed, k, 1), counter_uniform(seed, k, 2));
    const double lateral = 1 + 0.25 * wave(position, 1400 + 170 * static_cast<double>(k & 7));
    sum += strength * lateral * wavelet(z - layer);
  }
  return sum;
}

/// The base of a channel that was filled with something else; z is the depth below its banks.
double channel(double position, double z) {
  const double across = (position - 2050) / 420;
  if (std::fabs(across) >= 1) return 0;
  const double depth = 48 * (1 - across * across);
  return -1.1 * std::sqrt(1 - across * across) * wavelet(z - depth);
}

}  // namespace

double reflectivity(double position, double depth) {
  const double unfaulted = depth - throw_at(position, depth);
  const double upper = unfaulted - 12 * wave(position, 2700, 0.4);
  const double folds = 90 * wave(position, 800, 0.4) + 30 * wave(position, 420) + 0.02 * position;
  const double below_unconformity = upper - 270 - 25 * wave(position, 1700);
  const double is_below = std::clamp(0.5 + below_unconformity / 30, 0.0, 1.0);
  return (1 - is_below) * (layers(position, upper, 11) + channel(position, upper - 150)) +
         is_below * layers(position, unfaulted - folds, 12) + 0.8 * wavelet(below_unconformity);
}

}  // namespace gridlops::program
