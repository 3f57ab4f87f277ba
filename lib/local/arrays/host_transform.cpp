// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "base/at_work.hpp"
#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "local/arrays/line_transform.hpp"

namespace gridlops {

namespace {

/// Gathers a few neighbouring lines at a time, to use whole cache lines of the block. Transforms each line by
/// itself.
template <Scalar T>
class HostTransform final : public LineTransform<T> {
 public:
  using R = Real<T>;
  using Complex = std::complex<R>;

  explicit HostTransform(const FourierLines& lines)
      : lines_(lines),
        all_frequencies_(is_complex<T> ? lines.samples : lines.samples / 2 + 1),
        fast_(lines.samples),
        samples_(at(most_lanes * lines.samples)),
        spectra_(at(most_lanes * all_frequencies_)) {
    for (Index k = 0; k < lines.frequencies; ++k) weights_.push_back(static_cast<R>(lines.weight(k)));
  }

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    const AtWork at_work;
    for_each_group(X.cols, [&](Index column, Index slice, Range lanes) {
      const T* const x = X.column(column) + slice * lines_.samples * lines_.inner;
      Complex* const y = complex_column(Y, column) + slice * lines_.frequencies * lines_.inner;
      for (Index i = 0; i < lines_.samples; ++i)
        for (Index l = 0; l < lanes.size; ++l)
          samples(l)[lines_.sample_place(i)] = x[i * lines_.inner + lanes.begin + l];
      for (Index l = 0; l < lanes.size; ++l) fast_.forward(samples(l), spectrum(l));
      for (Index k = 0; k < lines_.frequencies; ++k) {
        for (Index l = 0; l < lanes.size; ++l) {
          Complex& element = y[k * lines_.inner + lanes.begin + l];
          element = combined(alpha, weights_[at(k)] * spectrum(l)[lines_.frequency_place(k)], beta, element);
        }
      }
    });
  }

  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    const AtWork at_work;
    for_each_group(Y.cols, [&](Index column, Index slice, Range lanes) {
      const Complex* const y = complex_column(Y, column) + slice * lines_.frequencies * lines_.inner;
      T* const x = X.column(column) + slice * lines_.samples * lines_.inner;
      if (lines_.frequencies < all_frequencies_) std::fill(spectra_.begin(), spectra_.end(), Complex(0));
      for (Index k = 0; k < lines_.frequencies; ++k)
        for (Index l = 0; l < lanes.size; ++l)
          spectrum(l)[lines_.frequency_place(k)] = weights_[at(k)] * y[k * lines_.inner + lanes.begin + l];
      for (Index l = 0; l < lanes.size; ++l) fast_.backward(spectrum(l), samples(l));
      for (Index i = 0; i < lines_.samples; ++i) {
        for (Index l = 0; l < lanes.size; ++l) {
          T& element = x[i * lines_.inner + lanes.begin + l];
          element = combined(alpha, samples(l)[lines_.sample_place(i)], beta, element);
        }
      }
    });
  }

 private:
  static constexpr Index most_lanes = 16;

  template <class Function>
  void for_each_group(Index columns, Function&& function) const {
    for (Index column = 0; column < columns; ++column)
      for (Index slice = 0; slice < lines_.outer; ++slice)
        for (Index begin = 0; begin < lines_.inner; begin += most_lanes)
          function(column, slice, Range{begin, std::min(most_lanes, lines_.inner - begin)});
  }
  template <class Value>
  static auto complex_column(MatrixView<Value> Y, Index column) {
    using Result = std::conditional_t<std::is_const_v<Value>, const Complex, Complex>;
    return reinterpret_cast<Result*>(Y.column(column));
  }

  /// Line l, in the form that the transform's library uses.
  T* samples(Index l) { return samples_.data() + l * lines_.samples; }
  Complex* spectrum(Index l) { return spectra_.data() + l * all_frequencies_; }

  /// α sum + β element.
  template <class Value>
  static Value combined(T alpha, Value sum, T beta, Value element) {
    const auto times = [](T factor, Value value) {
      if constexpr (is_complex<T>) {
        return product(factor, value);
      } else {
        return factor * value;
      }
    };
    return beta == T(0) ? times(alpha, sum) : times(alpha, sum) + times(beta, element);
  }

  FourierLines lines_;
  Index all_frequencies_;
  std::conditional_t<is_complex<T>, FastFourier<R>, RealFourier<R>> fast_;
  std::vector<R> weights_;
  std::vector<T> samples_;
  std::vector<Complex> spectra_;
};

}  // namespace

template <Scalar T>
std::unique_ptr<LineTransform<T>> make_host_transform(const FourierLines& lines) {
  return std::make_unique<HostTransform<T>>(lines);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template std::unique_ptr<LineTransform<T>> make_host_transform<T>(const FourierLines&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
