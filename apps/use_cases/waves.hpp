// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <optional>
#include <vector>

#include "command_line/option_parser.hpp"

namespace gridlops::program {

/// The setting of the waves of one frequency between two grids of stations.
struct WaveSetting {
  double frequency, velocity, spacing, jitter;
  Index row_line, col_line;  ///< stations in a line
};

/// The options of a setting. None: the default.
struct WaveArguments {
  std::optional<double> frequency, velocity, spacing, jitter;
  Index row_line = 0, col_line = 0;  ///< stations in a line; 0: about as many as there are lines

  /// Adds the options that set them.
  void define(Options& options);
  /// The name of an option that was given; null if none was.
  const char* given() const;
  /// The setting for this many stations. Throws UsageError for values that have no waves.
  WaveSetting setting(Index rows, Index cols) const;
};

/// A station in metres: across lines, along its line.
using Station = std::array<double, 2>;

/// The waves of one frequency from sources (rows) to receivers (columns) on the surface, by way of four
/// dipping reflectors below it. Receivers lie on a regular grid. So do sources, whose grid is centred on that
/// of the receivers, and each of them is moved a little. The last line of a grid may be shorter than the
/// others.
class Waves {
 public:
  Waves(const WaveSetting& setting, Index rows, Index cols, std::uint64_t seed);

  // These are functions of the index, whatever rank they are called on.
  const Station& source(Index i) const { return sources_[static_cast<std::size_t>(i)]; }
  const Station& receiver(Index j) const { return receivers_[static_cast<std::size_t>(j)]; }
  /// Σ aₖ exp(−2πıf rₖ/c)/rₖ over reflectors k, where rₖ is the distance from source i's image to receiver j.
  std::complex<double> at(Index i, Index j) const;

 private:
  double wave_number_;
  std::vector<Station> sources_, receivers_;
};

}  // namespace gridlops::program
