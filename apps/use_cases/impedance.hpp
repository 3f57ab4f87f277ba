// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/ops/space.hpp"

namespace gridlops::program {

/// The models of post-stack and reflectivity inversion: parallel vertical sections through the ground.
struct ImpedanceArguments {
  Index lines = 20, traces = 800, samples = 550;
  std::string model;  ///< a file with one section for all lines; empty: a generated one
  Index decimate = 3;
  int cut = 0;  ///< the dimension along which ranks divide the arrays
};
/// Adds the options that set these arguments. Returns those that describe the generated section.
std::vector<CLI::Option*> define_impedance(Options& options, ImpedanceArguments& arguments);

/// m = log(acoustic impedance), an array of lines × traces × samples (of depth or time).
class Impedance {
 public:
  /// If the model is a file, reads it on all members of the grid (collective over the grid); if this is only
  /// a plan, only its header. Throws InputError on all members.
  Impedance(const std::shared_ptr<const ProcessGrid>& grid, const ImpedanceArguments& arguments,
            bool is_planned);

  const Space& space() const { return space_; }
  /// The memory that a section in a file takes on each rank, and while it is read.
  Index bytes() const { return bytes_; }
  Index bytes_at_reading() const { return bytes_at_reading_; }
  template <Scalar T>
  DistMatrix<T> model() const;

 private:
  double operator()(Index line, Index trace, Index sample) const;

  ImpedanceArguments arguments_;  // with the sizes of the section in the file
  std::vector<double> section_;   // samples × all traces, column-major
  Index bytes_ = 0, bytes_at_reading_ = 0;
  Space space_;
};

/// The wavelet of the traces: a 15 Hz Ricker wavelet, in samples of 4 ms, with this many on either side of
/// its peak.
constexpr Index half_wavelet = 20;
std::vector<double> trace_wavelet();

}  // namespace gridlops::program
