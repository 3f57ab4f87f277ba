// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/mdd/data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <span>

#include "use_cases/mdd/kernel.hpp"

namespace gridlops::program {

namespace {

/// A reflection: it arrives at √(t₀² + h²/v²) at offset h.
struct Event {
  double time, velocity, amplitude;
};
constexpr std::array<Event, 1> model_events{{{0.2, 1100, 1}}};
constexpr std::array<Event, 3> kernel_events{{{0.2, 1200, 1}, {0.5, 1500, 0.6}, {0.7, 2000, 0.5}}};

/// Adds `amplitude` times a wavelet at a time between two samples, by linear interpolation, to the samples 0
/// … of a trace that lie `step` apart. Parts outside the trace are lost.
template <class R>
void add_event(const Event& event, double offset, double interval, std::span<const double> wavelet,
               double amplitude, R* trace, Index samples, Index step) {
  const double time = std::hypot(event.time, offset / event.velocity) / interval;
  const Index half = static_cast<Index>(wavelet.size()) / 2;
  if (!(time < static_cast<double>(samples + half))) return;
  const Index first = static_cast<Index>(time);
  const double behind = time - static_cast<double>(first);
  for (const auto& [sample, share] : {std::pair{first, 1 - behind}, std::pair{first + 1, behind}}) {
    for (Index k = 0; k < static_cast<Index>(wavelet.size()); ++k) {
      const Index t = sample + k - half;
      if (0 <= t && t < samples)
        trace[t * step] +=
            static_cast<R>(event.amplitude * amplitude * share * wavelet[static_cast<std::size_t>(k)]);
    }
  }
}

/// A taper of n samples whose ends are half Hann windows of five samples, the outermost being zero.
double taper(Index i, Index n) {
  constexpr Index width = 5;
  const Index from_end = std::min(i, n - 1 - i);
  if (from_end >= width) return 1;
  return 0.5 - 0.5 * std::cos(std::numbers::pi * static_cast<double>(from_end) / (width - 1));
}

/// Fills this rank's block of real arrays (samples, traces), cut along the traces. trace(j, c, first) adds to
/// trace j of column c, which is zero before. In memory, its samples are as many elements apart as this block
/// has traces.
template <Scalar R, class Trace>
void fill_traces(const Space& space, DistMatrix<R>& X, Trace&& trace) {
  const MatrixView<R> block = X.local();
  const Range traces = space.local_box()[1];
  std::vector<R> values(static_cast<std::size_t>(block.rows));
  for (Index column = 0; column < block.cols; ++column) {
    std::fill(values.begin(), values.end(), R(0));
    for (Index j = 0; j < traces.size; ++j) trace(traces.begin + j, column, values.data() + j, traces.size);
    space.grid->backend()->upload(values.data(), block.column(column),
                                  block.rows * static_cast<Index>(sizeof(R)));
  }
}

}  // namespace

template <Scalar R>
DistMatrix<std::complex<R>> make_kernel(const MddArguments& arguments, const Space& kernel) {
  using C = std::complex<R>;
  const auto& grid = kernel.grid;
  DistMatrix<C> G = allocate_matrix<C>(grid, kernel.layout(1));
  const std::vector<double> wavelet = ricker(arguments.frequency, arguments.interval, arguments.half_wavelet);
  const double scale = arguments.interval * std::sqrt(static_cast<double>(arguments.samples));
  const Partition parts = parts_of_kernel<R>(arguments, *grid, arguments.nx, arguments.ny);
  for (int part = 0; part < parts.parts(); ++part) {
    const Range sources = parts.range(part);
    const auto fill = [&](const Space& space, DistMatrix<R>& X) {
      fill_traces<R>(space, X, [&](Index trace, Index, R* first, Index step) {
        const Index ix = sources.begin + trace / arguments.ny, iy = trace % arguments.ny;
        const double offset = arguments.ox + arguments.dx * static_cast<double>(ix) - arguments.oy -
                              arguments.dy * static_cast<double>(iy);
        for (const Event& event : kernel_events)
          add_event(event, offset, arguments.interval, wavelet,
                    taper(ix, arguments.nx) * taper(iy, arguments.ny), first, arguments.samples, step);
      });
    };
    put_slices<C>(arguments, sources, {0, arguments.ny},
                  spectra_of_traces<R>(arguments, grid, sources.size * arguments.ny, scale, fill), G);
  }
  return G;
}

template <Scalar R>
void fill_model(const MddArguments& arguments, const Space& space, DistMatrix<R>& model) {
  const double length = arguments.dx * static_cast<double>(arguments.nx - 1);
  constexpr std::array spike{1.0};
  fill_traces<R>(space, model, [&](Index ix, Index source, R* first, Index step) {
    const double place = (static_cast<double>(source) + 0.5) / static_cast<double>(arguments.sources) - 0.5;
    const double offset = arguments.dx * static_cast<double>(ix) - length / 2 - place * length;
    for (const Event& event : model_events)
      add_event(event, offset, arguments.interval, spike, 1, first + arguments.time_zero() * step,
                arguments.samples, step);
  });
}

#define GRIDLOPS_INSTANTIATE(R)                                                           \
  template DistMatrix<std::complex<R>> make_kernel<R>(const MddArguments&, const Space&); \
  template void fill_model(const MddArguments&, const Space&, DistMatrix<R>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
