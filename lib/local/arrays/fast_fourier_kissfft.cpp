// SPDX-License-Identifier: BSD-3-Clause
// Transforms by KISS FFT of lengths with the prime factors 2, 3 and 5. A factor of up to a few dozen that has
// other primes takes a step of its own. Lengths with larger ones become convolutions of fast lengths.
#include <algorithm>
#include <array>
#include <cmath>
#include <kissfft.hh>
#include <numbers>
#include <optional>
#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/fast_fourier.hpp"

namespace gridlops {

namespace {

/// exp(−2πi·k/n) for 0 ≤ k < n, with an error of about one rounding of a double.
std::complex<double> root(Index k, Index n) {
  const Index nearest = 2 * k > n ? k - n : k;
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(nearest) / static_cast<double>(n));
}

/// A transform of n = q·m samples in one direction. m has the prime factors 2, 3 and 5, and q is odd: q
/// transforms of every q-th sample by KISS FFT, then m transforms of q numbers by their definition.
template <class R>
class MixedLine {
 public:
  using Complex = std::complex<R>;

  /// The largest q for which this takes less time than the convolution (see docs/performance-notes.md).
  static constexpr Index most = 31;

  MixedLine(Index n, bool inverse) : q_(rough_part(n)), m_(n / q_), fast_(at(m_), inverse) {
    if (q_ == 1) return;
    const auto turned = [inverse](std::complex<double> z) { return inverse ? std::conj(z) : z; };
    for (Index r = 0; r < q_; ++r)
      for (Index c = 0; c < m_; ++c) turns_.push_back(static_cast<Complex>(turned(root(r * c % n, n))));
    for (Index r = 0; r < q_; ++r) {
      cosines_.push_back(static_cast<R>(root(r, q_).real()));
      sines_.push_back(static_cast<R>(-turned(root(r, q_)).imag()));
    }
  }

  Index scratch_size() const { return q_ == 1 ? 0 : q_ * m_; }

  void transform(const Complex* in, Complex* out, Complex* scratch) const {
    if (q_ == 1) return one_line(in, out, 1);
    for (Index r = 0; r < q_; ++r) one_line(in + r, scratch + r * m_, q_);
    for (Index begin = 0; begin < m_; begin += width)
      combine(begin, std::min(width, m_ - begin), scratch, out);
  }

 private:
  static constexpr Index width = 8;
  using Numbers = std::array<R, 2 * width>;  // real and imaginary parts of neighbours

  /// KISS FFT is not thread-safe if n is 1.
  void one_line(const Complex* in, Complex* out, Index step) const {
    if (m_ == 1) {
      *out = *in;
    } else {
      fast_.transform(in, out, 0, 1, at(step));
    }
  }

  /// The numbers t_r = exp(−2πi·rc/n) scratch_r,c give out_c+mk = Σ_r exp(−2πi·rk/q) t_r for all k. The terms
  /// of r and q − r are cos(2πrk/q) (t_r + t_q−r) − i sin(2πrk/q) (t_r − t_q−r), and differ between k and
  /// q − k in one sign.
  void combine(Index begin, Index count, const Complex* scratch, Complex* out) const {
    const Index half = q_ / 2;
    std::array<Numbers, 1 + most / 2> sums, differences;
    const auto term = [&](Index r) {
      Numbers numbers{};
      for (Index c = 0; c < count; ++c) {
        const Complex t = product(scratch[r * m_ + begin + c], turns_[at(r * m_ + begin + c)]);
        numbers[at(2 * c)] = t.real();
        numbers[at(2 * c + 1)] = t.imag();
      }
      return numbers;
    };
    const Numbers first = term(0);
    Numbers total = first;
    for (Index r = 1; r <= half; ++r) {
      const Numbers t = term(r), opposite = term(q_ - r);
      Numbers &sum = sums[at(r)], &difference = differences[at(r)];
      for (std::size_t i = 0; i < t.size(); ++i) {
        sum[i] = t[i] + opposite[i];
        difference[i] = t[i] - opposite[i];
        total[i] += sum[i];
      }
    }
    for (Index c = 0; c < count; ++c) out[begin + c] = {total[at(2 * c)], total[at(2 * c + 1)]};
    for (Index k = 1; k <= half; ++k) {
      Numbers even = first, odd{};
      Index turn = 0;
      for (Index r = 1; r <= half; ++r) {
        turn = turn + k < q_ ? turn + k : turn + k - q_;
        const R cosine = cosines_[at(turn)], sine = sines_[at(turn)];
        const Numbers &sum = sums[at(r)], &difference = differences[at(r)];
        for (std::size_t i = 0; i < even.size(); ++i) {
          even[i] += cosine * sum[i];
          odd[i] += sine * difference[i];
        }
      }
      Complex *const here = out + begin + m_ * k, *const there = out + begin + m_ * (q_ - k);
      for (Index c = 0; c < count; ++c) {
        const std::size_t re = at(2 * c), im = re + 1;
        here[c] = {even[re] + odd[im], even[im] - odd[re]};
        there[c] = {even[re] - odd[im], even[im] + odd[re]};
      }
    }
  }

  Index q_, m_;
  kissfft<R> fast_;
  std::vector<Complex> turns_;      // exp(∓2πi·rc/n), in the order of scratch
  std::vector<R> cosines_, sines_;  // of 2πr/q; the sines with the sign of the direction
};

/// X_k = Σ_i exp(−2πi·ik/n) x_i for the first `inputs` of n samples and the first `outputs` frequencies, for
/// any n: L. Bluestein, "A linear filtering approach to the computation of discrete Fourier transform", IEEE
/// Trans. Audio Electroacoust. 18 (1970). With the chirp w_j = exp(−πi·j²/n), 2ik = i² + k² − (k−i)² makes it
/// X_k = w_k Σ_i conj(w_k−i) (w_i x_i): a convolution, of which a cyclic one of inputs + outputs − 1 numbers
/// or more has all that is needed. The chirps and the spectrum of the filter are computed in double
/// precision.
template <class R>
class ChirpTransform {
 public:
  using Complex = std::complex<R>;

  ChirpTransform(Index n, Index inputs, Index outputs)
      : inputs_(inputs), outputs_(outputs), m_(fast_length(inputs + outputs - 1)), fast_(at(m_), false) {
    std::vector<std::complex<double>> filter(at(m_)), spectrum(at(m_));
    Index square = 0;  // j² modulo 2n
    for (Index j = 0; j < std::max(inputs, outputs); ++j) {
      const std::complex<double> chirp = root(square, 2 * n);
      chirps_.push_back(static_cast<Complex>(chirp));
      const std::complex<double> tap = std::conj(chirp) / static_cast<double>(m_);
      if (j < outputs) filter[at(j)] = tap;
      if (0 < j && j < inputs) filter[at(m_ - j)] = tap;
      square = (square + 2 * j + 1) % (2 * n);
    }
    kissfft<double>(at(m_), false).transform(filter.data(), spectrum.data());
    for (const std::complex<double>& frequency : spectrum)
      spectrum_.push_back(static_cast<Complex>(frequency));
  }

  Index scratch_size() const { return 2 * m_; }

  /// Calls load(i) for every sample and store(k, X_k) for every frequency.
  template <class Load, class Store>
  void transform(Load&& load, Store&& store, Complex* scratch) const {
    Complex *const a = scratch, *const b = scratch + m_;
    for (Index i = 0; i < inputs_; ++i) a[i] = product(load(i), chirps_[at(i)]);
    std::fill(a + inputs_, a + m_, Complex(0));
    fast_.transform(a, b);
    // Of conjugates the transform forward is the conjugate of the transform backward.
    for (Index j = 0; j < m_; ++j) a[j] = std::conj(product(b[j], spectrum_[at(j)]));
    fast_.transform(a, b);
    for (Index k = 0; k < outputs_; ++k) store(k, product(std::conj(b[k]), chirps_[at(k)]));
  }

 private:
  Index inputs_, outputs_, m_;
  kissfft<R> fast_;
  std::vector<Complex> chirps_, spectrum_;
};

}  // namespace

std::string fft_library() { return message("KISS FFT ", GRIDLOPS_KISSFFT_VERSION, ", BSD-3-Clause"); }

template <class R>
struct FastFourier<R>::Plans {
  explicit Plans(Index length) : n(length) {
    if (rough_part(n) > MixedLine<R>::most) {
      chirp.emplace(n, n, n);
    } else {
      forward.emplace(n, false);
      backward.emplace(n, true);
    }
  }
  Index n;
  std::optional<MixedLine<R>> forward, backward;
  std::optional<ChirpTransform<R>> chirp;
};

template <class R>
FastFourier<R>::FastFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
FastFourier<R>::~FastFourier() = default;

template <class R>
Index FastFourier<R>::scratch_size() const {
  return plans_->chirp ? plans_->chirp->scratch_size() : plans_->forward->scratch_size();
}
template <class R>
void FastFourier<R>::forward(const Complex* in, Complex* out, Complex* scratch) const {
  if (!plans_->chirp) return plans_->forward->transform(in, out, scratch);
  plans_->chirp->transform([=](Index i) { return in[i]; }, [=](Index k, Complex X) { out[k] = X; }, scratch);
}
template <class R>
void FastFourier<R>::backward(const Complex* in, Complex* out, Complex* scratch) const {
  if (!plans_->chirp) return plans_->backward->transform(in, out, scratch);
  plans_->chirp->transform([=](Index i) { return std::conj(in[i]); },
                           [=](Index k, Complex X) { out[k] = std::conj(X); }, scratch);
}

/// An even number of samples is transformed as half as many complex ones. An odd number has as many, or is a
/// convolution with fewer frequencies than samples.
template <class R>
struct RealFourier<R>::Plans {
  explicit Plans(Index samples) : n(samples), half(samples / 2) {
    if (n % 2 == 1 && rough_part(n) > MixedLine<R>::most) {
      to_frequencies.emplace(n, n, half + 1);
      to_samples.emplace(n, half + 1, n);
      return;
    }
    complex.emplace(n % 2 == 0 ? half : n);
    if (n % 2 == 0)
      for (Index k = 0; k <= half; ++k) turns.push_back(static_cast<Complex>(root(k, n)));
  }
  Index n, half;
  std::optional<FastFourier<R>> complex;
  std::optional<ChirpTransform<R>> to_frequencies, to_samples;
  std::vector<Complex> turns;  // exp(−2πi·k/n)
};

template <class R>
RealFourier<R>::RealFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
RealFourier<R>::~RealFourier() = default;

template <class R>
Index RealFourier<R>::scratch_size() const {
  if (!plans_->complex)
    return std::max(plans_->to_frequencies->scratch_size(), plans_->to_samples->scratch_size());
  return plans_->complex->scratch_size() + (plans_->n % 2 == 0 ? 0 : 2 * plans_->n);
}

// For even n, the even-numbered samples are the real parts of z and the odd-numbered ones its imaginary
// parts. With h = n/2 and Z'_k = conj Z_(h−k), their spectra are (Z + Z')/2 and (Z − Z')/2i.
template <class R>
void RealFourier<R>::forward(const R* in, Complex* out, Complex* scratch) const {
  const Index n = plans_->n, h = plans_->half;
  if (!plans_->complex) {
    plans_->to_frequencies->transform([=](Index i) { return Complex(in[i]); },
                                      [=](Index k, Complex X) { out[k] = X; }, scratch);
    out[0].imag(0);
  } else if (n % 2 == 1) {
    std::copy_n(in, n, scratch);
    plans_->complex->forward(scratch, scratch + n, scratch + 2 * n);
    std::copy_n(scratch + n, h + 1, out);
  } else {
    plans_->complex->forward(reinterpret_cast<const Complex*>(in), out, scratch);
    out[h] = out[0];
    for (Index k = 0; k <= h - k; ++k) {
      const Complex Z = R(0.5) * out[k], opposite = R(0.5) * std::conj(out[h - k]);
      const Complex even = Z + opposite, difference = Z - opposite;
      const Complex odd = product(plans_->turns[at(k)], {difference.imag(), -difference.real()});
      out[k] = even + odd;
      out[h - k] = std::conj(even - odd);
    }
  }
}

template <class R>
void RealFourier<R>::backward(Complex* in, R* out, Complex* scratch) const {
  const Index n = plans_->n, h = plans_->half;
  in[0].imag(0);
  if (!plans_->complex) {
    // Each frequency but the first stands for two. The real parts are those of the conjugate sum, too.
    plans_->to_samples->transform([=](Index k) { return k == 0 ? in[0] : R(2) * std::conj(in[k]); },
                                  [=](Index i, Complex x) { out[i] = x.real(); }, scratch);
  } else if (n % 2 == 1) {
    scratch[0] = in[0];
    for (Index k = 1; k <= h; ++k) {
      scratch[k] = in[k];
      scratch[n - k] = std::conj(in[k]);
    }
    plans_->complex->backward(scratch, scratch + n, scratch + 2 * n);
    for (Index i = 0; i < n; ++i) out[i] = scratch[n + i].real();
  } else {
    // The inverse of what forward() does, twice: z = even + i·odd at k, and at h − k with their conjugates.
    in[h].imag(0);
    for (Index k = 0; k <= h - k; ++k) {
      const Complex here = in[k], opposite = std::conj(in[h - k]);
      const Complex even = here + opposite;
      const Complex odd = product(std::conj(plans_->turns[at(k)]), here - opposite);
      in[k] = {even.real() - odd.imag(), even.imag() + odd.real()};
      in[h - k] = {even.real() + odd.imag(), odd.real() - even.imag()};
    }
    plans_->complex->backward(in, reinterpret_cast<Complex*>(out), scratch);
  }
}

template class FastFourier<float>;
template class FastFourier<double>;
template class RealFourier<float>;
template class RealFourier<double>;

}  // namespace gridlops
