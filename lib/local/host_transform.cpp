// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <complex>
#include <type_traits>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "local/fast_fourier.hpp"
#include "local/line_transform.hpp"

namespace gridlops {

namespace {

/// Gathers a few neighbouring lines at a time, so that whole cache lines of the block are used. Two real
/// lines a and b travel through one transform as a + ib.
template <Scalar T>
class HostTransform final : public LineTransform<T> {
 public:
  using R = Real<T>;
  using Complex = std::complex<R>;

  explicit HostTransform(const FourierLines& lines)
      : lines_(lines),
        fast_(lines.samples),
        in_(at(most_lanes * lines.samples)),
        out_(at(most_lanes * lines.samples)) {
    for (Index k = 0; k < lines.frequencies; ++k) weights_.push_back(static_cast<R>(lines.weight(k)));
  }

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    for_each_group(X.cols, [&](Index column, Index slice, Range lanes) {
      const T* const x = X.column(column) + slice * lines_.samples * lines_.inner;
      Complex* const y = complex_column(Y, column) + slice * lines_.frequencies * lines_.inner;
      if (lanes.size % lanes_together != 0) clear(lanes);
      for (Index i = 0; i < lines_.samples; ++i)
        for (Index l = 0; l < lanes.size; ++l)
          sample(in_, l, lines_.sample_place(i)) = x[i * lines_.inner + lanes.begin + l];
      for (Index t = 0; t < transforms(lanes); ++t) fast_.forward(line(in_, t), line(out_, t));
      for (Index k = 0; k < lines_.frequencies; ++k) {
        for (Index l = 0; l < lanes.size; ++l) {
          Complex& element = y[k * lines_.inner + lanes.begin + l];
          element = combined(alpha, weights_[at(k)] * frequency(l, lines_.frequency_place(k)), beta, element);
        }
      }
    });
  }

  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    for_each_group(Y.cols, [&](Index column, Index slice, Range lanes) {
      const Complex* const y = complex_column(Y, column) + slice * lines_.frequencies * lines_.inner;
      T* const x = X.column(column) + slice * lines_.samples * lines_.inner;
      clear(lanes);
      for (Index k = 0; k < lines_.frequencies; ++k)
        for (Index l = 0; l < lanes.size; ++l)
          add_frequency(l, lines_.frequency_place(k),
                        weights_[at(k)] * y[k * lines_.inner + lanes.begin + l]);
      for (Index t = 0; t < transforms(lanes); ++t) fast_.backward(line(in_, t), line(out_, t));
      for (Index i = 0; i < lines_.samples; ++i) {
        for (Index l = 0; l < lanes.size; ++l) {
          T& element = x[i * lines_.inner + lanes.begin + l];
          element = combined(alpha, sample(out_, l, lines_.sample_place(i)), beta, element);
        }
      }
    });
  }

 private:
  static constexpr Index most_lanes = 16;
  static constexpr Index lanes_together = is_complex<T> ? 1 : 2;

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

  static Index transforms(Range lanes) { return (lanes.size + lanes_together - 1) / lanes_together; }
  Complex* line(std::vector<Complex>& lines, Index t) const { return lines.data() + t * lines_.samples; }
  void clear(Range lanes) { std::fill_n(in_.begin(), transforms(lanes) * lines_.samples, Complex(0)); }

  /// Sample i of line l.
  T& sample(std::vector<Complex>& lines, Index l, Index i) const {
    Complex& both = line(lines, l / lanes_together)[i];
    return reinterpret_cast<T*>(&both)[l % lanes_together];
  }
  /// Frequency k of line l: for z = a + ib these are (z_k + conj z_₋k)/2 and (z_k − conj z_₋k)/2i.
  Complex frequency(Index l, Index k) {
    const Complex* const z = line(out_, l / lanes_together);
    if constexpr (is_complex<T>) return z[k];
    const Complex opposite = std::conj(z[k == 0 ? 0 : lines_.samples - k]);
    const Complex difference = z[k] - opposite;
    return R(0.5) * (l % 2 == 0 ? z[k] + opposite : Complex(difference.imag(), -difference.real()));
  }
  /// Adds to frequency k of line l. Of a real line, whose samples will be the real parts of a sum, one half
  /// each goes to k and, conjugated, to −k.
  void add_frequency(Index l, Index k, Complex value) {
    Complex* const z = line(in_, l / lanes_together);
    if constexpr (is_complex<T>) {
      z[k] += value;
    } else {
      const Complex half = R(0.5) * value;
      Complex& opposite = z[k == 0 ? 0 : lines_.samples - k];
      z[k] += l % 2 == 0 ? half : Complex(-half.imag(), half.real());
      opposite += l % 2 == 0 ? std::conj(half) : Complex(half.imag(), half.real());
    }
  }

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
  FastFourier<R> fast_;
  std::vector<R> weights_;
  std::vector<Complex> in_, out_;
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
