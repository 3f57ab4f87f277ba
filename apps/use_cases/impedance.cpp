// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/impedance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "gridlops/base/random.hpp"
#include "use_cases/own_arrays.hpp"
#include "use_cases/use_case.hpp"

namespace gridlops::program {

namespace {

/// A sine with this many periods per unit length.
double wave(double position, double periods, double phase = 0) {
  return std::sin(2 * std::numbers::pi * (periods * position + phase));
}

/// A generated section: folded layers of random impedance, which grows with depth, displaced by two faults.
/// The position along the section and the depth are from 0 to 1, and `across` is the line's number over 20:
/// folds and faults move along the section from line to line.
double generated(double position, double depth, double across) {
  constexpr int layers = 30;
  const double along = position - 0.12 * across;
  double unfolded = depth + 0.03 * wave(along, 1.3, 0.1) + 0.012 * wave(along, 3.7) * depth;
  if (along > 0.22 + 0.3 * depth) unfolded -= 0.045;
  if (along > 0.62 - 0.2 * depth) unfolded += 0.06;
  const double place = unfolded * layers;
  const auto top = [](Index layer) {
    return static_cast<double>(layer) + 0.7 * counter_uniform(21, layer, 0);
  };
  auto layer = static_cast<Index>(std::floor(place));
  if (place < top(layer)) --layer;
  return std::log(2.0 + 2.5 * std::clamp(unfolded, 0.0, 1.0)) + 0.12 * counter_uniform(21, layer, 1);
}

}  // namespace

std::vector<CLI::Option*> define_impedance(Options& options, ImpedanceArguments& arguments) {
  options.group("Section");
  options.choice("--cut", arguments.cut, Names<int>{{"lines", 0}, {"traces", 1}, {"samples", 2}},
                 "What ranks divide among them [lines]");
  return {options.whole("--lines", arguments.lines, "N", 1, "Parallel sections, of all ranks together [20]"),
          options.text("--model", arguments.model, "FILE",
                       "Acoustic impedance, samples x traces, > 0, the same for all lines [generated]"),
          options.whole("--traces", arguments.traces, "N", 1, "Traces of a generated section [800]"),
          options.whole("--samples", arguments.samples, "N", 1, "Samples of its traces [550]"),
          options.whole("--decimate", arguments.decimate, "D", 1, "Takes every D-th trace [3]")};
}

Impedance::Impedance(const std::shared_ptr<const ProcessGrid>& grid, const ImpedanceArguments& arguments,
                     bool is_planned)
    : arguments_(arguments) {
  const std::string& path = arguments.model;
  if (!path.empty()) {
    const MatrixHeader header = read_table_header(grid->comm(), path);
    arguments_.samples = header.rows;
    arguments_.traces = header.cols;
    bytes_ = header.rows * header.cols * Index{sizeof(double)};
    bytes_at_reading_ = bytes_ + 2 * header.rows * header.cols * size_of(header.type);
    if (!is_planned) section_ = read_table(grid, path).values;
    for (double& element : section_) {
      if (!(element > 0))
        throw InputError(fmt::format("{}: an impedance is {}; all must be finite and > 0", path, element));
      element = std::log(element);
    }
  }
  const Index traces = (arguments_.traces - 1) / arguments_.decimate + 1;
  space_ = array_space(grid, {arguments_.lines, traces, arguments_.samples}, arguments_.cut);
}

double Impedance::operator()(Index line, Index trace, Index sample) const {
  if (!section_.empty()) return section_[static_cast<std::size_t>(trace * arguments_.samples + sample)];
  return generated(static_cast<double>(trace) / static_cast<double>(arguments_.traces),
                   static_cast<double>(sample) / static_cast<double>(arguments_.samples),
                   static_cast<double>(line) / 20);
}

template <Scalar T>
DistMatrix<T> Impedance::model() const {
  DistMatrix<T> m = allocate_matrix<T>(space_.grid, space_.layout(1));
  const Box box = space_.local_box();
  const Index first = m.local_row_range().begin;
  m.fill([&](Index i, Index) {
    const Index cell = i - first, sample = cell % box[2].size, trace = cell / box[2].size % box[1].size,
                line = cell / box[2].size / box[1].size;
    return static_cast<T>(
        (*this)(box[0].begin + line, (box[1].begin + trace) * arguments_.decimate, box[2].begin + sample));
  });
  return m;
}

template DistMatrix<float> Impedance::model() const;
template DistMatrix<double> Impedance::model() const;

std::vector<double> trace_wavelet() { return ricker(15, 0.004, half_wavelet); }

}  // namespace gridlops::program
