// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/local/buffer.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "local/arrays/line_transform.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

/// Elements that are neighbours in a line of the array, and in its packed copy.
struct Run {
  Index first, size, place;
};

/// n elements, of which number `zero` comes first in the packed line.
std::vector<Run> turned_runs(Index n, Index zero) {
  std::vector<Run> runs{{zero, n - zero, 0}};
  if (zero > 0) runs.push_back({0, zero, n - zero});
  return runs;
}

/// The elements from one packed line to the next: it begins in a cache line of its own, and lines of a power
/// of two do not all fall into the same set of the cache.
template <class Value>
constexpr Index distance_of_lines(Index length) {
  constexpr Index unit = line_alignment / static_cast<Index>(sizeof(Value));
  return ((length + unit - 1) / unit | 1) * unit;
}

/// Packs a few neighbouring lines at a time, to use whole cache lines of the array. Transforms each line by
/// itself. Each thread has groups of lines, and memory for one.
template <Scalar T>
class HostTransform final : public LineTransform<T> {
 public:
  using R = Real<T>;
  using Complex = std::complex<R>;

  HostTransform(const std::shared_ptr<Backend>& backend, const FourierLines& lines)
      : lines_(lines),
        all_frequencies_(is_complex<T> ? lines.samples : lines.samples / 2 + 1),
        most_lanes_(std::clamp<Index>(lines.inner, 1, 16)),
        fast_(lines.samples),
        time_(turned_runs(lines.samples, lines.time_zero)),
        spectrum_(turned_runs(lines.frequencies, lines.frequency_zero)),
        samples_(backend, threads_per_rank() * most_lanes_ * next_samples()),
        spectra_(backend, threads_per_rank() * most_lanes_ * next_spectrum()),
        scratch_(backend, threads_per_rank() * next_scratch()) {
    for (Index k = 0; k < lines.frequencies; ++k) {
      weights_.push_back(static_cast<R>(lines.weight(k)));
      // Backward, a real transform takes each frequency twice, but those that are their own opposites.
      const bool counts_twice = !is_complex<T> && k > 0 && 2 * k != lines.samples;
      adjoint_weights_.push_back(counts_twice ? weights_.back() / 2 : weights_.back());
    }
  }

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    const AtWork at_work;
    const R* const weights = weights_.data();
    for_each_group(X.cols, [&](const Room& room, Index column, Index slice, Range lanes) {
      T* const samples = room.samples;
      Complex* const spectra = room.spectra;
      const T* const x = X.column(column) + slice * lines_.samples * lines_.inner + lanes.begin;
      Complex* const y = complex_column(Y, column) + slice * lines_.frequencies * lines_.inner + lanes.begin;
      for_each_element(time_, lanes.size, next_samples(),
                       [=](Index from, Index to, Index) { samples[to] = x[from]; });
      for (Index l = 0; l < lanes.size; ++l)
        fast_.forward(samples + l * next_samples(), spectra + l * next_spectrum(), room.scratch);
      add(
          spectrum_, lanes.size, next_spectrum(), alpha,
          [=](Index place, Index k) { return weights[k] * spectra[place]; }, beta, y);
    });
  }

  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    const AtWork at_work;
    const R* const weights = adjoint_weights_.data();
    for_each_group(Y.cols, [&](const Room& room, Index column, Index slice, Range lanes) {
      T* const samples = room.samples;
      Complex* const spectra = room.spectra;
      const Complex* const y =
          complex_column(Y, column) + slice * lines_.frequencies * lines_.inner + lanes.begin;
      T* const x = X.column(column) + slice * lines_.samples * lines_.inner + lanes.begin;
      for_each_element(spectrum_, lanes.size, next_spectrum(),
                       [=](Index from, Index to, Index k) { spectra[to] = weights[k] * y[from]; });
      for (Index l = 0; l < lanes.size; ++l) {
        Complex* const spectrum = spectra + l * next_spectrum();
        std::fill(spectrum + lines_.frequencies, spectrum + all_frequencies_, Complex(0));
        fast_.backward(spectrum, samples + l * next_samples(), room.scratch);
      }
      add(
          time_, lanes.size, next_samples(), alpha, [=](Index place, Index) { return samples[place]; }, beta,
          x);
    });
  }

 private:
  Index next_samples() const { return distance_of_lines<T>(lines_.samples); }
  Index next_spectrum() const { return distance_of_lines<Complex>(all_frequencies_); }

  Index next_scratch() const {
    constexpr Index unit = line_alignment / Index{sizeof(Complex)};
    return (fast_.scratch_size() + unit - 1) / unit * unit;
  }

  /// A thread's memory for a group of lines.
  struct Room {
    T* samples;
    Complex *spectra, *scratch;
  };

  template <class Function>
  void for_each_group(Index columns, Function&& function) const {
    const Index groups_in_slice = (lines_.inner + most_lanes_ - 1) / most_lanes_;
    const Index groups = columns * lines_.outer * groups_in_slice;
    const double n = static_cast<double>(lines_.samples);
    const double operations =
        static_cast<double>(columns * lines_.outer * lines_.inner) * 5 * n * std::log2(n + 1);
    for_ranges(groups, 1, threads_for(operations), [&](int thread, Range range) {
      const Room room{samples_.data() + thread * most_lanes_ * next_samples(),
                      spectra_.data() + thread * most_lanes_ * next_spectrum(),
                      scratch_.data() + thread * next_scratch()};
      for (Index group = range.begin; group < range.end(); ++group) {
        const Index begin = group % groups_in_slice * most_lanes_, slice = group / groups_in_slice;
        function(room, slice / lines_.outer, slice % lines_.outer,
                 Range{begin, std::min(most_lanes_, lines_.inner - begin)});
      }
    });
  }
  template <class Value>
  static auto complex_column(MatrixView<Value> Y, Index column) {
    using Result = std::conditional_t<std::is_const_v<Value>, const Complex, Complex>;
    return reinterpret_cast<Result*>(Y.column(column));
  }

  /// Calls work(place in the array, place in the packed lines, element of the line) for every element of a
  /// group of lines. Where lines are not interleaved, the innermost loop runs along them.
  template <class Work>
  void for_each_element(const std::vector<Run>& runs, Index lanes, Index next_line, Work&& work) const {
    const Index inner = lines_.inner;
    for (const Run& run : runs) {
      if (inner == 1) {
        for (Index i = 0; i < run.size; ++i) work(run.first + i, run.place + i, run.first + i);
      } else {
        for (Index i = 0; i < run.size; ++i)
          for (Index l = 0; l < lanes; ++l)
            work((run.first + i) * inner + l, run.place + i + l * next_line, run.first + i);
      }
    }
  }

  /// y ← α value + β y for every element of a group of lines, with value(place in the packed lines, element).
  template <class Value, class Result>
  void add(const std::vector<Run>& runs, Index lanes, Index next_line, T alpha, Value&& value, T beta,
           Result* y) const {
    if (alpha == T(1) && beta == T(0)) {
      for_each_element(runs, lanes, next_line,
                       [=](Index to, Index from, Index k) { y[to] = value(from, k); });
    } else {
      for_each_element(runs, lanes, next_line, [=](Index to, Index from, Index k) {
        const Result scaled = times(alpha, value(from, k));
        y[to] = beta == T(0) ? scaled : scaled + times(beta, y[to]);
      });
    }
  }
  template <class Value>
  static Value times(T factor, Value value) {
    if constexpr (is_complex<T>) {
      return product(factor, value);
    } else {
      return factor * value;
    }
  }

  FourierLines lines_;
  Index all_frequencies_, most_lanes_;
  std::conditional_t<is_complex<T>, FastFourier<R>, RealFourier<R>> fast_;
  std::vector<Run> time_, spectrum_;
  std::vector<R> weights_, adjoint_weights_;
  Buffer<T> samples_;
  Buffer<Complex> spectra_, scratch_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<LineTransform<T>> make_host_transform(const std::shared_ptr<Backend>& backend,
                                                      const FourierLines& lines) {
  return std::make_unique<HostTransform<T>>(backend, lines);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template std::unique_ptr<LineTransform<T>> make_host_transform<T>(const std::shared_ptr<Backend>&, \
                                                                    const FourierLines&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
