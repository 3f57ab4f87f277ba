// SPDX-License-Identifier: BSD-3-Clause
// A line that the library does not transform well is split into lines of one prime factor and the rest, or
// becomes a convolution of a length that the library transforms fast.
#include "local/arrays/fast_fourier.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/local/buffer.hpp"
#include "local/arrays/library_lines.hpp"

namespace gridlops {

namespace {

/// The largest prime factor of n; 1 for n = 1.
Index largest_prime(Index n) {
  Index prime = 1;
  for (Index p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) prime = p;
  }
  return std::max(prime, n);
}

/// The largest prime factor of odd n that is at most largest_step(); 1 if there is none.
Index step_of(Index n) {
  Index step = 1;
  for (Index p = 3; p <= largest_step(); p += 2)
    if (n % p == 0 && largest_prime(p) == p) step = p;
  return step;
}

/// exp(−2πi·k/n) for 0 ≤ k < n, with an error of about one rounding of a double.
std::complex<double> root(Index k, Index n) {
  const Index nearest = 2 * k > n ? k - n : k;
  return std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(nearest) / static_cast<double>(n));
}

/// The complex numbers from one line in scratch memory to the next, which begins as lines must.
Index distance_of(Index n) { return (n + 7) / 8 * 8; }

template <class R>
using Complex = std::complex<R>;

/// X_k = Σ_r exp(∓2πi·rk/q) x_r for odd q, by the definition, for several lines at a time.
template <class R>
class ShortLines {
 public:
  static constexpr Index lines = 32 / sizeof(R);  // four registers of 16 bytes, which all processors have
  using Numbers = std::array<R, at(2 * lines)>;   // real and imaginary parts

  explicit ShortLines(Index q) : q_(q) {
    for (Index r = 0; r < q; ++r) {
      cosines_.push_back(static_cast<R>(root(r, q).real()));
      sines_.push_back(static_cast<R>(-root(r, q).imag()));
    }
  }

  /// Calls load(r), which returns the numbers r of all lines, and store(k, X_k). The terms of r and q − r are
  /// cos(2πrk/q) (x_r + x_q−r) ∓ i sin(2πrk/q) (x_r − x_q−r), and differ between k and q − k in one sign.
  template <class Load, class Store>
  void transform(bool forward, Load&& load, Store&& store) const {
    const Index half = q_ / 2;
    Terms sums, differences;
    const Numbers first = load(0);
    Numbers total = first;
    for (Index r = 1; r <= half; ++r) {
      const Numbers x = load(r), opposite = load(q_ - r);
      Numbers &sum = sums[at(r)], &difference = differences[at(r)];
      for (std::size_t i = 0; i < x.size(); ++i) {
        sum[i] = x[i] + opposite[i];
        difference[i] = x[i] - opposite[i];
        total[i] += sum[i];
      }
    }
    store(0, total);
    for (Index k = 1; k <= half; ++k) {
      const auto [even, odd] = sums_of(k, first, sums, differences);
      Numbers here, there;  // even ∓ i·odd
      for (std::size_t re = 0; re < even.size(); re += 2) {
        here[re] = even[re] + odd[re + 1];
        here[re + 1] = even[re + 1] - odd[re];
        there[re] = even[re] - odd[re + 1];
        there[re + 1] = even[re + 1] + odd[re];
      }
      store(k, forward ? here : there);
      store(q_ - k, forward ? there : here);
    }
  }

 private:
  using Terms = std::array<Numbers, 1 + most_step / 2>;
  using Register [[gnu::vector_size(16)]] = R;
  static constexpr std::size_t registers = sizeof(Numbers) / sizeof(Register);

  /// x_0 + Σ_r cos(2πrk/q) sums_r and Σ_r sin(2πrk/q) differences_r, which stay in registers.
  std::pair<Numbers, Numbers> sums_of(Index k, const Numbers& first, const Terms& sums,
                                      const Terms& differences) const {
    Register even[registers], odd[registers] = {};
    std::memcpy(even, first.data(), sizeof(Numbers));
    Index turn = 0;
    for (Index r = 1; r <= q_ / 2; ++r) {
      turn = turn + k < q_ ? turn + k : turn + k - q_;
      const R cosine = cosines_[at(turn)], sine = sines_[at(turn)];
      Register sum[registers], difference[registers];
      std::memcpy(sum, sums[at(r)].data(), sizeof(Numbers));
      std::memcpy(difference, differences[at(r)].data(), sizeof(Numbers));
      for (std::size_t i = 0; i < registers; ++i) {
        even[i] += cosine * sum[i];
        odd[i] += sine * difference[i];
      }
    }
    std::pair<Numbers, Numbers> both;
    std::memcpy(both.first.data(), even, sizeof(Numbers));
    std::memcpy(both.second.data(), odd, sizeof(Numbers));
    return both;
  }

  Index q_;
  std::vector<R> cosines_, sines_;  // of 2πr/q
};

/// Numbers of neighbouring lines, by value(line) for the lines that there are.
template <class R, class Value>
typename ShortLines<R>::Numbers numbers_of(Index count, Value&& value) {
  typename ShortLines<R>::Numbers numbers{};
  for (Index c = 0; c < count; ++c) {
    const Complex<R> number = value(c);
    numbers[at(2 * c)] = number.real();
    numbers[at(2 * c + 1)] = number.imag();
  }
  return numbers;
}

/// Calls work(first, count) for the columns 0 … total − 1 of short lines.
template <class R, class Work>
void for_each_columns(Index total, Work&& work) {
  for (Index begin = 0; begin < total; begin += ShortLines<R>::lines)
    work(begin, std::min(ShortLines<R>::lines, total - begin));
}

/// A transform of q·m complex samples for an odd prime q: q transforms of every q-th sample, then m of q
/// numbers (J. Cooley and J. Tukey, "An algorithm for the machine calculation of complex Fourier series",
/// Math. Comp. 19, 1965).
template <class R>
class ComplexStep {
 public:
  ComplexStep(Index q, Index m) : q_(q), m_(m), distance_(distance_of(m)), short_(q), long_(m) {
    for (Index r = 0; r < q; ++r)
      for (Index c = 0; c < m; ++c) turns_.push_back(static_cast<Complex<R>>(root(r * c % (q * m), q * m)));
  }
  Index scratch_size() const { return (q_ + 1) * distance_ + long_.scratch_size(); }

  void transform(bool forward, const Complex<R>* in, Complex<R>* out, Complex<R>* scratch) const {
    Complex<R>*const line = scratch + q_ * distance_, *const rest = line + distance_;
    for (Index r = 0; r < q_; ++r) {
      for (Index j = 0; j < m_; ++j) line[j] = in[q_ * j + r];
      Complex<R>* const spectrum = scratch + r * distance_;
      forward ? long_.forward(line, spectrum, rest) : long_.backward(line, spectrum, rest);
    }
    for_each_columns<R>(m_, [&](Index begin, Index count) {
      const auto load = [&](Index r) {
        const Complex<R>*const from = scratch + r * distance_ + begin, *const turns =
                                                                           &turns_[at(r * m_ + begin)];
        return numbers_of<R>(
            count, [=](Index c) { return product(from[c], forward ? turns[c] : std::conj(turns[c])); });
      };
      const auto store = [&](Index k, const typename ShortLines<R>::Numbers& X) {
        Complex<R>* const to = out + k * m_ + begin;
        for (Index c = 0; c < count; ++c) to[c] = {X[at(2 * c)], X[at(2 * c + 1)]};
      };
      short_.transform(forward, load, store);
    });
  }

 private:
  Index q_, m_, distance_;
  ShortLines<R> short_;
  FastFourier<R> long_;
  std::vector<Complex<R>> turns_;  // exp(−2πi·rc/qm)
};

/// Transforms q·m real samples, an odd number: two lines of every q-th sample are the real and imaginary
/// parts of a complex one. The spectra of those are its even and odd part, and only the first half of their
/// frequencies is needed.
template <class R>
class RealStep {
 public:
  RealStep(Index q, Index m)
      : q_(q), m_(m), n_(q * m), columns_(m / 2 + 1), distance_(distance_of(m)), short_(q), long_(m) {
    for (Index r = 0; r < q; ++r)
      for (Index k = 0; k < columns_; ++k) turns_.push_back(static_cast<Complex<R>>(root(r * k % n_, n_)));
  }
  Index scratch_size() const { return (pairs() + 1) * distance_ + long_.scratch_size(); }

  void forward(const R* in, Complex<R>* out, Complex<R>* scratch) const {
    Complex<R>*const line = scratch + pairs() * distance_, *const rest = line + distance_;
    for (Index a = 0; a < pairs(); ++a) {
      const R* const from = in + 2 * a;
      const bool is_pair = 2 * a + 1 < q_;
      for (Index j = 0; j < m_; ++j) line[j] = {from[q_ * j], is_pair ? from[q_ * j + 1] : R(0)};
      long_.forward(line, scratch + a * distance_, rest);
    }
    for_each_columns<R>(columns_, [&](Index begin, Index count) {
      const auto load = [&](Index r) {
        const Complex<R>* const pair = scratch + r / 2 * distance_;
        const Complex<R>* const turns = &turns_[at(r * columns_ + begin)];
        return numbers_of<R>(count, [=, this](Index c) {
          const Index k = begin + c;
          const Complex<R> Z = R(0.5) * pair[k], opposite = R(0.5) * std::conj(pair[k == 0 ? 0 : m_ - k]);
          const Complex<R> difference = Z - opposite;
          return product(r % 2 == 0 ? Z + opposite : Complex<R>(difference.imag(), -difference.real()),
                         turns[c]);
        });
      };
      const auto store = [&](Index j, const typename ShortLines<R>::Numbers& X) {
        for (Index c = 0; c < count; ++c) {
          const Index k = begin + c + m_ * j;
          const Complex<R> value(X[at(2 * c)], X[at(2 * c + 1)]);
          (2 * k < n_ ? out[k] : out[n_ - k]) = 2 * k < n_ ? value : std::conj(value);
        }
      };
      short_.transform(true, load, store);
    });
    out[0].imag(0);
  }

  void backward(const Complex<R>* in, R* out, Complex<R>* scratch) const {
    Complex<R>*const line = scratch + pairs() * distance_, *const rest = line + distance_;
    std::fill_n(scratch, pairs() * distance_, Complex<R>(0));
    for_each_columns<R>(columns_, [&](Index begin, Index count) {
      const auto load = [&](Index j) {
        return numbers_of<R>(count, [=, this](Index c) {
          const Index k = begin + c + m_ * j;
          return k == 0 ? Complex<R>(in[0].real()) : 2 * k < n_ ? in[k] : std::conj(in[n_ - k]);
        });
      };
      const auto store = [&](Index r, const typename ShortLines<R>::Numbers& X) {
        Complex<R>* const pair = scratch + r / 2 * distance_;
        const Complex<R>* const turns = &turns_[at(r * columns_ + begin)];
        for (Index c = 0; c < count; ++c) {
          const Index k = begin + c;
          const Complex<R> T = product(Complex<R>(X[at(2 * c)], X[at(2 * c + 1)]), std::conj(turns[c]));
          pair[k] += r % 2 == 0 ? T : Complex<R>(-T.imag(), T.real());
          if (k > 0) pair[m_ - k] += r % 2 == 0 ? std::conj(T) : Complex<R>(T.imag(), T.real());
        }
      };
      short_.transform(false, load, store);
    });
    for (Index a = 0; a < pairs(); ++a) {
      long_.backward(scratch + a * distance_, line, rest);
      R* const to = out + 2 * a;
      for (Index j = 0; j < m_; ++j) to[q_ * j] = line[j].real();
      if (2 * a + 1 == q_) continue;
      for (Index j = 0; j < m_; ++j) to[q_ * j + 1] = line[j].imag();
    }
  }

 private:
  Index pairs() const { return (q_ + 1) / 2; }

  Index q_, m_, n_, columns_, distance_;
  ShortLines<R> short_;
  FastFourier<R> long_;
  std::vector<Complex<R>> turns_;  // exp(−2πi·rk/n)
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
  ChirpTransform(Index n, Index inputs, Index outputs)
      : inputs_(inputs),
        outputs_(outputs),
        m_(convolution_length(inputs + outputs - 1)),
        fast_(library_line<R>(m_)) {
    const auto host = make_host_backend();
    const Buffer<Complex<double>> filter(host, m_), spectrum(host, m_);
    std::fill_n(filter.data(), m_, Complex<double>(0));
    Index square = 0;  // j² modulo 2n
    for (Index j = 0; j < std::max(inputs, outputs); ++j) {
      const Complex<double> chirp = root(square, 2 * n);
      chirps_.push_back(static_cast<Complex<R>>(chirp));
      const Complex<double> tap = std::conj(chirp) / static_cast<double>(m_);
      if (j < outputs) filter.data()[j] = tap;
      if (0 < j && j < inputs) filter.data()[m_ - j] = tap;
      square = (square + 2 * j + 1) % (2 * n);
    }
    library_line<double>(m_)->forward(filter.data(), spectrum.data());
    for (const Complex<double>& frequency : spectrum.span())
      spectrum_.push_back(static_cast<Complex<R>>(frequency));
  }

  Index scratch_size() const { return 2 * distance_of(m_); }

  /// Calls load(i) for every sample and store(k, X_k) for every frequency.
  template <class Load, class Store>
  void transform(Load&& load, Store&& store, Complex<R>* scratch) const {
    Complex<R>*const a = scratch, *const b = scratch + distance_of(m_);
    for (Index i = 0; i < inputs_; ++i) a[i] = product(load(i), chirps_[at(i)]);
    std::fill(a + inputs_, a + m_, Complex<R>(0));
    fast_->forward(a, b);
    for (Index j = 0; j < m_; ++j) b[j] = product(b[j], spectrum_[at(j)]);
    fast_->backward(b, a);
    for (Index k = 0; k < outputs_; ++k) store(k, product(a[k], chirps_[at(k)]));
  }

 private:
  Index inputs_, outputs_, m_;
  std::unique_ptr<const ComplexLine<R>> fast_;
  std::vector<Complex<R>> chirps_, spectrum_;
};

}  // namespace

template <class R>
struct FastFourier<R>::Plans {
  explicit Plans(Index n) : size(n), library(library_line<R>(n)) {
    if (library != nullptr || n == 1) return;
    const Index q = largest_prime(n);
    // A step computes several lines at a time, of which a prime number has one.
    constexpr Index largest_alone = 31;
    if (q > largest_step() || (q == n && q > largest_alone)) {
      chirp.emplace(n, n, n);
    } else {
      step.emplace(q, n / q);
    }
  }
  void transform(bool is_forward, const Complex* in, Complex* out, Complex* scratch) const {
    if (library != nullptr) {
      is_forward ? library->forward(in, out) : library->backward(in, out);
    } else if (step) {
      step->transform(is_forward, in, out, scratch);
    } else if (!chirp) {
      *out = *in;
    } else if (is_forward) {
      chirp->transform([=](Index i) { return in[i]; }, [=](Index k, Complex X) { out[k] = X; }, scratch);
    } else {
      chirp->transform([=](Index i) { return std::conj(in[i]); },
                       [=](Index k, Complex X) { out[k] = std::conj(X); }, scratch);
    }
  }
  Index size;
  std::unique_ptr<const ComplexLine<R>> library;
  std::optional<ComplexStep<R>> step;
  std::optional<ChirpTransform<R>> chirp;
};

template <class R>
FastFourier<R>::FastFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
FastFourier<R>::~FastFourier() = default;

template <class R>
Index FastFourier<R>::scratch_size() const {
  return plans_->step ? plans_->step->scratch_size() : plans_->chirp ? plans_->chirp->scratch_size() : 0;
}
template <class R>
void FastFourier<R>::forward(const Complex* in, Complex* out, Complex* scratch) const {
  plans_->transform(true, in, out, scratch);
}
template <class R>
void FastFourier<R>::backward(const Complex* in, Complex* out, Complex* scratch) const {
  plans_->transform(false, in, out, scratch);
}

/// An even number of samples is transformed as half as many complex ones. Of an odd number a prime factor is
/// taken; where it is too large, a convolution has fewer frequencies than samples.
template <class R>
struct RealFourier<R>::Plans {
  explicit Plans(Index samples) : n(samples), half(samples / 2), library(library_real_line<R>(samples)) {
    if (library != nullptr) return;
    const Index q = step_of(n);
    if (n % 2 == 0) {
      complex.emplace(half);
      for (Index k = 0; k <= half; ++k) turns.push_back(static_cast<Complex>(root(k, n)));
    } else if (q > 1 || n == 1) {
      step.emplace(q, n / q);
    } else {
      to_frequencies.emplace(n, n, half + 1);
      to_samples.emplace(n, half + 1, n);
    }
  }
  Index n, half;
  std::unique_ptr<const RealLine<R>> library;
  std::optional<FastFourier<R>> complex;
  std::optional<RealStep<R>> step;
  std::optional<ChirpTransform<R>> to_frequencies, to_samples;
  std::vector<Complex> turns;  // exp(−2πi·k/n)
};

template <class R>
RealFourier<R>::RealFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
RealFourier<R>::~RealFourier() = default;

template <class R>
Index RealFourier<R>::scratch_size() const {
  if (plans_->library != nullptr) return 0;
  if (plans_->complex) return plans_->complex->scratch_size();
  if (plans_->step) return plans_->step->scratch_size();
  return std::max(plans_->to_frequencies->scratch_size(), plans_->to_samples->scratch_size());
}

// For even n, the even-numbered samples are the real parts of z and the odd-numbered ones its imaginary
// parts. With h = n/2 and Z'_k = conj Z_(h−k), their spectra are (Z + Z')/2 and (Z − Z')/2i.
template <class R>
void RealFourier<R>::forward(const R* in, Complex* out, Complex* scratch) const {
  const Index h = plans_->half;
  if (plans_->library != nullptr) return plans_->library->forward(in, out);
  if (plans_->step) return plans_->step->forward(in, out, scratch);
  if (!plans_->complex) {
    plans_->to_frequencies->transform([=](Index i) { return Complex(in[i]); },
                                      [=](Index k, Complex X) { out[k] = X; }, scratch);
    return out[0].imag(0);
  }
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

template <class R>
void RealFourier<R>::backward(Complex* in, R* out, Complex* scratch) const {
  const Index h = plans_->half;
  if (plans_->library != nullptr) return plans_->library->backward(in, out);
  if (plans_->step) return plans_->step->backward(in, out, scratch);
  in[0].imag(0);
  if (!plans_->complex) {
    // Each frequency but the first stands for two. The real parts are those of the conjugate sum, too.
    return plans_->to_samples->transform([=](Index k) { return k == 0 ? in[0] : R(2) * std::conj(in[k]); },
                                         [=](Index i, Complex x) { out[i] = x.real(); }, scratch);
  }
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

template class FastFourier<float>;
template class FastFourier<double>;
template class RealFourier<float>;
template class RealFourier<double>;

}  // namespace gridlops
