// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/fourier.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/error.hpp"
#include "local/array_kernels.hpp"
#include "local/fast_fourier.hpp"

namespace gridlops {

namespace {

/// The lines of a block that a transform takes from n samples to the first `frequencies` frequencies:
/// y_k = s_k Σ_i exp(−2πi (i−c)(k−d)/n) x_i. There are `inner` neighbouring lines in each of `outer` slices.
struct FourierLines {
  Index outer = 1, inner = 1;
  Index samples = 0, frequencies = 0;
  Index time_zero = 0, frequency_zero = 0;  // c and d, in 0 … n − 1
  double scale = 1;                         // s_0
  bool one_sided = false;                   // whether s_k also stands for the frequency n − k

  Index sample_place(Index i) const { return wrapped(i - time_zero); }
  Index frequency_place(Index k) const { return wrapped(k - frequency_zero); }
  double weight(Index k) const {
    return one_sided && k > 0 && 2 * k != samples ? scale * std::numbers::sqrt2 : scale;
  }
  Index wrapped(Index i) const { return i < 0 ? i + samples : i; }
};

/// What a transform does with the blocks of one rank. Lines of T become lines of complex numbers, which for
/// real T are pairs.
template <Scalar T>
class LineTransform {
 public:
  virtual ~LineTransform() = default;
  /// Y ← α F X + β Y.
  virtual void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) = 0;
  /// X ← α Fᴴ Y + β X.
  virtual void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) = 0;
};

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

/// Multiplies with the matrix of the transform, in the memory of any backend. In column-major order a slice
/// of samples is an inner × samples block. The matrix is samples × frequencies; for real T it has the real
/// parts of all columns first, then the imaginary parts.
template <Scalar T>
class DenseTransform final : public LineTransform<T> {
 public:
  DenseTransform(const std::shared_ptr<Backend>& backend, const FourierLines& lines)
      : backend_(backend),
        lines_(lines),
        columns_(is_complex<T> ? lines.frequencies : 2 * lines.frequencies),
        matrix_(backend, lines.samples * columns_) {
    std::vector<T> host(at(lines.samples * columns_));
    for (Index k = 0; k < lines.frequencies; ++k) {
      for (Index i = 0; i < lines.samples; ++i) {
        const Index turn = lines.sample_place(i) * lines.frequency_place(k) % lines.samples;
        const std::complex<double> element =
            std::polar(lines.weight(k), -2 * std::numbers::pi * static_cast<double>(turn) /
                                            static_cast<double>(lines.samples));
        if constexpr (is_complex<T>) {
          host[at(i + k * lines.samples)] = T(element);
        } else {
          host[at(i + k * lines.samples)] = static_cast<T>(element.real());
          host[at(i + (lines.frequencies + k) * lines.samples)] = static_cast<T>(element.imag());
        }
      }
    }
    backend->upload(host.data(), matrix_.data(), matrix_.size() * Index{sizeof(T)});
    if constexpr (!is_complex<T>) parts_ = Buffer<T>(backend, lines.inner * columns_);
  }

  void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    for_each_slice(X, Y, [&](MatrixView<const T> x, T* y) {
      if constexpr (is_complex<T>) {
        kernels().gemm(Op::none, Op::none, alpha, x, matrix(), beta, {y, lines_.inner, columns_});
      } else {
        kernels().gemm(Op::none, Op::none, alpha, x, matrix(), T(0), parts());
        kernels().arrays().add_box(T(1), parts_.data(), beta, y, pairs_of_parts(false));
      }
    });
  }

  void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) override {
    for_each_slice(X, Y, [&](MatrixView<T> x, const T* y) {
      if constexpr (is_complex<T>) {
        const MatrixView<const T> from(y, lines_.inner, columns_);
        kernels().gemm(Op::none, Op::adjoint, alpha, from, matrix(), beta, x);
      } else {
        kernels().arrays().add_box(T(1), y, T(0), parts_.data(), pairs_of_parts(true));
        kernels().gemm(Op::none, Op::adjoint, alpha, parts(), matrix(), beta, x);
      }
    });
  }

 private:
  const Kernels<T>& kernels() const { return backend_->kernels<T>(); }
  MatrixView<const T> matrix() const { return {matrix_.data(), lines_.samples, columns_}; }
  MatrixView<T> parts() const { return {parts_.data(), lines_.inner, columns_}; }

  /// From parts, which are arrays (2, frequencies, inner), to pairs, or back.
  BoxLoops pairs_of_parts(bool back) const {
    const Index lines = lines_.frequencies * lines_.inner;
    BoxLoops box;
    back ? box.add(lines, 2, 1) : box.add(lines, 1, 2);
    back ? box.add(2, 1, lines) : box.add(2, lines, 1);
    return box;
  }
  template <class X, class Y, class Function>
  void for_each_slice(MatrixView<X> samples, MatrixView<Y> frequencies, Function&& function) const {
    if (lines_.inner == 0) return;
    for (Index column = 0; column < samples.cols; ++column)
      for (Index slice = 0; slice < lines_.outer; ++slice)
        function(MatrixView<X>(samples.column(column) + slice * lines_.inner * lines_.samples, lines_.inner,
                               lines_.samples),
                 frequencies.column(column) + slice * lines_.inner * columns_);
  }

  std::shared_ptr<Backend> backend_;
  FourierLines lines_;
  Index columns_;
  Buffer<T> matrix_, parts_;
};

template <Scalar T>
class Fourier final : public LinearOperator<T> {
 public:
  Fourier(Space range, Space domain, const FourierLines& lines)
      : LinearOperator<T>(std::move(range), std::move(domain)), lines_(lines) {}

 private:
  void do_reserve(Op, const Partition&) const override {
    if (transform_ != nullptr) return;
    const std::shared_ptr<Backend>& backend = this->domain().grid->backend();
    if (backend->memory_space() == MemorySpace::host) {
      transform_ = std::make_unique<HostTransform<T>>(lines_);
    } else {
      transform_ = std::make_unique<DenseTransform<T>>(backend, lines_);
    }
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    transform_->forward(alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    transform_->adjoint(alpha, Y.local(), beta, X.local());
  }

  FourierLines lines_;
  mutable std::unique_ptr<LineTransform<T>> transform_;
};

/// The lines along a dimension of this rank's block, before their scale is known.
FourierLines lines_along(const Space& space, int dim, Index time_zero) {
  const Dims& dims = space.dims;
  require<ShapeError>(0 <= dim && dim < dims.count(), "a Fourier transform along dimension ", dim, " of ",
                      space.describe(),
                      " is impossible: there is no such dimension; they are numbered from 0");
  require<ShapeError>(
      dims.cut(dim).parts() == 1, "a Fourier transform along dimension ", dim, " of an array of ",
      dims.describe(),
      " is impossible: that dimension is cut; cut another one, and redistribute with identity()");
  const Index n = dims.size(dim);
  require<ShapeError>(n > 0, "a Fourier transform along dimension ", dim, " of an array of ", dims.describe(),
                      " is impossible: it needs at least one sample");
  FourierLines lines;
  lines.samples = n;
  lines.time_zero = ((time_zero % n) + n) % n;
  if (!space.grid->is_member()) return lines;
  const Box box = space.local_box();
  for (std::size_t d = 0; d < box.size(); ++d)
    if (d != at(dim)) (d < at(dim) ? lines.outer : lines.inner) *= box[d].size;
  return lines;
}

}  // namespace

template <std::floating_point R>
OperatorPtr<std::complex<R>> fourier(const Space& space, int dim, const FourierOptions& options) {
  FourierLines lines = lines_along(space, dim, options.time_zero);
  const Index n = lines.samples;
  lines.frequencies = n;
  lines.frequency_zero = ((options.frequency_zero % n) + n) % n;
  if (options.norm != FourierNorm::none) lines.scale = 1 / static_cast<double>(n);
  if (options.norm == FourierNorm::ortho) lines.scale = std::sqrt(lines.scale);
  return std::make_shared<Fourier<std::complex<R>>>(space, space, lines);
}

template <std::floating_point R>
OperatorPtr<R> real_fourier(const Space& space, int dim, Index frequencies, Index time_zero) {
  FourierLines lines = lines_along(space, dim, time_zero);
  const Index all = lines.samples / 2 + 1;
  require<UsageError>(0 <= frequencies && frequencies <= all, "a real Fourier transform of ", lines.samples,
                      " samples has frequencies 0 … ", all - 1, ": it cannot give ", frequencies, " of them");
  lines.frequencies = frequencies == 0 ? all : frequencies;
  lines.scale = std::sqrt(1 / static_cast<double>(lines.samples));
  lines.one_sided = true;
  std::vector<Partition> cuts;
  for (int d = 0; d < space.dims.count(); ++d) cuts.push_back(space.dims.cut(d));
  cuts[at(dim)] = Partition::balanced(lines.frequencies, 1);
  Space range = paired_space(array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns));
  return std::make_shared<Fourier<R>>(std::move(range), space, lines);
}

template OperatorPtr<std::complex<float>> fourier<float>(const Space&, int, const FourierOptions&);
template OperatorPtr<std::complex<double>> fourier<double>(const Space&, int, const FourierOptions&);
template OperatorPtr<float> real_fourier(const Space&, int, Index, Index);
template OperatorPtr<double> real_fourier(const Space&, int, Index, Index);

}  // namespace gridlops
