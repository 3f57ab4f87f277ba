// SPDX-License-Identifier: BSD-3-Clause
// Compares transforms of single lines with their definition in extended precision, and checks that a line
// knows nothing of the others. Each implementation of transforms has a program with these cases.
#include "local/arrays/fast_fourier.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>
#include <set>
#include <thread>
#include <vector>

#include "gridlops/local/buffer.hpp"
#include "local/arrays/line_transform.hpp"
#include "support/catch.hpp"
#include "support/reference.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

// Powers, products of small primes, primes, and products of larger primes with small ones and with each
// other.
const std::vector<Index> lengths{1,    2,    3,    4,    5,    6,    7,    8,    9,    11,
                                 13,   14,   16,   17,   21,   22,   31,   34,   35,   37,
                                 49,   62,   74,   77,   93,   100,  127,  185,  1000, 1001,
                                 1024, 1031, 1502, 1599, 1999, 2062, 3001, 3200, 4096, 5003};

using Exact = std::complex<long double>;

template <class R>
constexpr double epsilon = std::numeric_limits<R>::epsilon();

/// A line in memory that begins as transforms ask for.
template <class T>
class Line {
 public:
  explicit Line(Index n) : memory_(make_host_backend(), n) { std::fill_n(data(), n, T(0)); }
  T* data() { return memory_.data(); }
  const T* data() const { return memory_.data(); }
  Index size() const { return memory_.size(); }
  T& operator[](Index i) { return data()[i]; }
  const T& operator[](Index i) const { return data()[i]; }
  bool has_bits_of(const Line& other) const {
    return std::memcmp(data(), other.data(), static_cast<std::size_t>(size()) * sizeof(T)) == 0;
  }

 private:
  Buffer<T> memory_;
};

template <class T>
Line<T> random_line(Index n, std::uint64_t seed) {
  Line<T> line(n);
  for (Index i = 0; i < n; ++i) line[i] = counter_random<T>(seed, i, n);
  return line;
}

template <class T>
double norm(const Line<T>& line) {
  double sum = 0;
  for (Index i = 0; i < line.size(); ++i) sum += std::norm(std::complex<double>(line[i]));
  return std::sqrt(sum);
}

/// exp(2πi·j/n) for all j.
class Roots {
 public:
  explicit Roots(Index n) : n_(n) {
    constexpr long double turn = 2 * std::numbers::pi_v<long double>;
    for (Index j = 0; j < n; ++j)
      roots_.push_back(std::polar(1.0L, turn * static_cast<long double>(j) / static_cast<long double>(n)));
  }
  /// exp(±2πi·ik/n), whose angle is reduced in integers.
  Exact operator()(Index i, Index k, bool forward) const {
    const Exact root = roots_[static_cast<std::size_t>(i * k % n_)];
    return forward ? std::conj(root) : root;
  }

 private:
  Index n_;
  std::vector<Exact> roots_;
};

/// Σ_i exp(±2πi·ik/n) value(i).
template <class Value>
Exact sum_of(const Roots& roots, Index n, Index k, bool forward, Value&& value) {
  Exact sum = 0;
  for (Index i = 0; i < n; ++i) sum += roots(i, k, forward) * value(i);
  return sum;
}

/// All of n places of short lines; of long lines the ends, the middle, and a few others.
std::set<Index> some_places(Index n) {
  std::set<Index> places{0, n / 2, n - 1};
  const Index others = n <= 200 ? n : 12;
  for (Index i = 0; i < others; ++i) places.insert(n <= 200 ? i : (i * i * 7919 + 31 * i) % n);
  return places;
}

/// The change that rounding may cause in an element. Each of log₂ 2n stages adds numbers whose squares sum to
/// ‖x‖² in an element, and rounds a sum, a product and a root of unity (KISS FFT's are computed in the same
/// precision): a few ε ‖x‖. A convolution has two transforms of up to three times the length, which explains
/// 10.
template <class R>
double rounding(Index n, double norm) {
  return 10 * epsilon<R> * std::log2(2.0 * static_cast<double>(n)) * norm;
}

/// Σ a conj(b), or the real part of it.
template <class T>
std::complex<double> inner(const Line<T>& a, const Line<T>& b) {
  std::complex<double> sum = 0;
  for (Index i = 0; i < a.size(); ++i)
    sum += std::complex<double>(a[i]) * std::conj(std::complex<double>(b[i]));
  return sum;
}

double distance(Exact exact, std::complex<double> found) {
  return static_cast<double>(std::abs(
      exact - Exact(static_cast<long double>(found.real()), static_cast<long double>(found.imag()))));
}

}  // namespace

TEST_CASE("Fast lengths have small prime factors", "[fast_fourier]") {
  CHECK(fast_length(1) == 1);
  CHECK(fast_length(7) == 8);
  CHECK(fast_length(11) == 12);
  CHECK(fast_length(1001) == 1024);
  CHECK(rough_part(1599) == 13 * 41);
  CHECK(rough_part(3000) == 1);
}

TEMPLATE_TEST_CASE("Transforms of complex lines are those of their definition", "[fast_fourier]", float,
                   double) {
  using R = TestType;
  using Complex = std::complex<R>;
  for (const Index n : lengths) {
    CAPTURE(n);
    const FastFourier<R> fast(n);
    const Roots roots(n);
    const Line<Complex> x = random_line<Complex>(n, 1), y = random_line<Complex>(n, 2);
    Line<Complex> X(n), z(n), scratch(fast.scratch_size());
    fast.forward(x.data(), X.data(), scratch.data());
    fast.backward(y.data(), z.data(), scratch.data());
    double wrong_forward = 0, wrong_backward = 0;
    for (const Index k : some_places(n)) {
      wrong_forward =
          std::max(wrong_forward, distance(sum_of(roots, n, k, true, [&](Index i) { return Exact(x[i]); }),
                                           std::complex<double>(X[k])));
      wrong_backward =
          std::max(wrong_backward, distance(sum_of(roots, n, k, false, [&](Index i) { return Exact(y[i]); }),
                                            std::complex<double>(z[k])));
    }
    CHECK(wrong_forward <= rounding<R>(n, norm(x)));
    CHECK(wrong_backward <= rounding<R>(n, norm(y)));
    // The adjoint: ⟨F x, y⟩ = ⟨x, Fᴴ y⟩.
    CHECK(std::abs(inner(X, y) - inner(x, z)) <= 2 * rounding<R>(n, norm(X) * norm(y)));
    // Both are as long as each other, so the second undoes the first.
    fast.backward(X.data(), z.data(), scratch.data());
    for (Index i = 0; i < n; ++i) z[i] -= static_cast<R>(n) * x[i];
    CHECK(norm(z) <= 2 * rounding<R>(n, norm(X)) * std::sqrt(static_cast<double>(n)));
  }
}

TEMPLATE_TEST_CASE("Transforms of real lines are those of their definition", "[fast_fourier]", float,
                   double) {
  using R = TestType;
  using Complex = std::complex<R>;
  for (const Index n : lengths) {
    CAPTURE(n);
    const Index frequencies = n / 2 + 1;
    const RealFourier<R> fast(n);
    const Roots roots(n);
    const auto is_own_opposite = [n](Index k) { return k == 0 || 2 * k == n; };
    const Line<R> x = random_line<R>(n, 3);
    Line<Complex> X(frequencies), scratch(fast.scratch_size());
    fast.forward(x.data(), X.data(), scratch.data());
    double wrong = 0;
    for (const Index k : some_places(frequencies)) {
      wrong = std::max(wrong, distance(sum_of(roots, n, k, true, [&](Index i) { return Exact(x[i]); }),
                                       std::complex<double>(X[k])));
      if (is_own_opposite(k)) CHECK(X[k].imag() == 0);
    }
    CHECK(wrong <= rounding<R>(n, norm(x)));

    const Line<Complex> y = random_line<Complex>(frequencies, 4);
    Line<Complex> used = random_line<Complex>(frequencies, 4), halves(frequencies);
    Line<R> z(n);
    used[0].imag(std::nan(""));  // to be ignored
    fast.backward(used.data(), z.data(), scratch.data());
    double wrong_backward = 0;
    for (const Index i : some_places(n)) {
      long double sum = 0;
      for (Index k = 0; k < frequencies; ++k)
        sum += is_own_opposite(k) ? y[k].real() * roots(i, k, false).real()
                                  : 2 * (roots(i, k, false) * Exact(y[k])).real();
      wrong_backward = std::max(wrong_backward, distance(sum, z[i]));
    }
    CHECK(wrong_backward <= 2 * rounding<R>(n, norm(y)));

    // The adjoint counts each pair of frequencies once.
    for (Index k = 0; k < frequencies; ++k) halves[k] = is_own_opposite(k) ? y[k] : R(0.5) * y[k];
    fast.backward(halves.data(), z.data(), scratch.data());
    CHECK(std::abs(inner(X, y).real() - inner(x, z).real()) <= 2 * rounding<R>(n, norm(X) * norm(y)));

    fast.backward(X.data(), z.data(), scratch.data());
    for (Index i = 0; i < n; ++i) z[i] -= static_cast<R>(n) * x[i];
    CHECK(norm(z) <= 2 * rounding<R>(n, norm(x)) * static_cast<double>(n));
  }
}

TEMPLATE_TEST_CASE("A line has the same bits in every place and every thread", "[fast_fourier]", float,
                   double) {
  using R = TestType;
  using Complex = std::complex<R>;
  for (const Index n : {1, 7, 13, 16, 100, 127, 1001, 1502, 1599}) {
    CAPTURE(n);
    const FastFourier<R> fast(n);
    const RealFourier<R> real(n);
    const Line<Complex> x = random_line<Complex>(n, 5);
    const Line<R> r = random_line<R>(n, 6);
    const auto run = [&](Line<Complex>& X, Line<Complex>& S) {
      Line<Complex> scratch(std::max(fast.scratch_size(), real.scratch_size()));
      fast.forward(x.data(), X.data(), scratch.data());
      real.forward(r.data(), S.data(), scratch.data());
    };
    Line<Complex> X(n), S(n / 2 + 1);
    run(X, S);
    constexpr std::size_t count = 4;
    std::vector<int> differ(count, 0);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < count; ++t)
      threads.emplace_back([&, t] {
        for (int repeat = 0; repeat < 20; ++repeat) {
          Line<Complex> mine(n), spectrum(n / 2 + 1);
          run(mine, spectrum);
          if (!mine.has_bits_of(X) || !spectrum.has_bits_of(S)) ++differ[t];
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(differ == std::vector<int>(count, 0));
    // Another plan for this length, elsewhere in memory.
    const FastFourier<R> again(n);
    Line<Complex> other(n), scratch(again.scratch_size());
    again.forward(x.data(), other.data(), scratch.data());
    CHECK(other.has_bits_of(X));
  }
}

TEMPLATE_LIST_TEST_CASE("A line of an array knows nothing of its neighbours", "[fast_fourier]", Scalars) {
  using T = TestType;
  using R = Real<T>;
  const auto backend = make_host_backend();
  for (const Index n : {1, 6, 7, 37, 128, 185}) {
    for (const Index inner : {1, 2, 16, 37}) {
      for (const Index shift : {Index{0}, n / 2}) {
        CAPTURE(n, inner, shift);
        FourierLines lines;
        lines.outer = 2;
        lines.inner = inner;
        lines.samples = n;
        lines.frequencies = is_complex<T> ? n : n / 2 + 1;
        lines.time_zero = shift;
        lines.frequency_zero = is_complex<T> ? shift : 0;
        lines.one_sided = !is_complex<T>;
        const auto transform = make_host_transform<T>(backend, lines);
        const Index width = is_complex<T> ? 1 : 2;  // numbers of T in a frequency
        const Index rows = lines.outer * n * inner, spectra = lines.outer * lines.frequencies * inner * width;
        // Every line has the same numbers, but line 1 of the second slice others.
        const auto filled = [&](Index length, Index of_element, T other) {
          Buffer<T> array(backend, 2 * lines.outer * length * inner * of_element);
          for (Index i = 0; i < array.size(); ++i) {
            const Index row = i % (array.size() / 2), k = row / of_element / inner % length;
            const Index line = row / of_element % inner, slice = row / of_element / inner / length;
            array.data()[i] = slice == 1 && line == std::min<Index>(1, inner - 1)
                                  ? other
                                  : counter_random<T>(9, k, row % of_element);
          }
          return array;
        };
        for (const T odd : {T(std::numeric_limits<R>::quiet_NaN()), T(std::numeric_limits<R>::infinity()),
                            T(static_cast<R>(1e30))}) {
          const Buffer<T> x = filled(n, 1, odd), y = filled(lines.frequencies, width, odd);
          Buffer<T> Y = filled(lines.frequencies, width, odd), X = filled(n, 1, odd);
          transform->forward(T(1), x.matrix(rows, 2), T(0), Y.matrix(spectra, 2));
          transform->adjoint(T(1), y.matrix(spectra, 2), T(0), X.matrix(rows, 2));
          // The odd line alone is spoilt by NaN; the others have the bits of the first.
          const auto differing = [&](const Buffer<T>& array, Index length, Index of_element) {
            Index differ = 0;
            bool is_spoilt = false;
            for (Index i = 0; i < array.size(); ++i) {
              const Index row = i % (array.size() / 2), k = row / of_element / inner % length;
              const Index line = row / of_element % inner, slice = row / of_element / inner / length;
              if (slice == 1 && line == std::min<Index>(1, inner - 1)) {
                is_spoilt = is_spoilt || is_nan(array.data()[i]);
                continue;
              }
              const T& first = array.data()[k * inner * of_element + row % of_element];
              if (std::memcmp(&first, array.data() + i, sizeof(T)) != 0 || is_nan(first)) ++differ;
            }
            return is_nan(odd) && !is_spoilt ? -1 : differ;
          };
          CHECK(differing(Y, lines.frequencies, width) == 0);
          CHECK(differing(X, n, 1) == 0);
        }
      }
    }
  }
}

TEMPLATE_LIST_TEST_CASE(
    "Lines of arrays are transformed as defined, scaled by α, and added to β times the result",
    "[fast_fourier]", Scalars) {
  using T = TestType;
  using R = Real<T>;
  const auto backend = make_host_backend();
  for (const Index inner : {1, 3}) {
    FourierLines lines;
    lines.inner = inner;
    lines.samples = 9;
    lines.frequencies = is_complex<T> ? 9 : 4;  // of five
    lines.time_zero = 4;
    lines.scale = 0.25;
    const auto transform = make_host_transform<T>(backend, lines);
    const Index rows = 9 * inner, spectra = lines.frequencies * inner * (is_complex<T> ? 1 : 2);
    const auto array = [&](Index size, std::uint64_t seed) {
      Buffer<T> made(backend, size);
      for (Index i = 0; i < size; ++i) made.data()[i] = counter_random<T>(seed, i, 0);
      return made;
    };
    const T alpha = number<T>(2, -3), beta = number<T>(0.5, 1);
    const auto check = [&](bool adjoint, Index from, Index to) {
      const Buffer<T> x = array(from, 1), y = array(to, 2);
      Buffer<T> plain(backend, to), scaled = array(to, 2), fresh(backend, to);
      std::fill_n(fresh.data(), to, quiet_nan<T>());
      const auto apply = [&](T a, T b, Buffer<T>& result) {
        if (adjoint) {
          transform->adjoint(a, x.matrix(from, 1), b, result.matrix(to, 1));
        } else {
          transform->forward(a, x.matrix(from, 1), b, result.matrix(to, 1));
        }
      };
      apply(T(1), T(0), plain);
      apply(alpha, beta, scaled);
      apply(alpha, T(0), fresh);
      for (Index i = 0; !adjoint && i < lines.frequencies * inner; ++i) {
        const Index k = i / inner, line = i % inner;
        const Exact exact = sum_of(Roots(9), 9, k, true, [&](Index t) {
          return static_cast<long double>(lines.scale) *
                 Exact(std::complex<double>(x.data()[(t + lines.time_zero) % 9 * inner + line]));
        });
        const auto found = reinterpret_cast<const std::complex<R>*>(plain.data())[i];
        CHECK(distance(exact, std::complex<double>(found)) <= rounding<R>(9, 5 * lines.scale));
      }
      // Complex numbers of a real transform are scaled part by part. Two products and a sum are rounded.
      for (Index i = 0; i < to; ++i) {
        CHECK(std::abs(scaled.data()[i] - (alpha * plain.data()[i] + beta * y.data()[i])) <= 64 * epsilon<R>);
        CHECK(std::abs(fresh.data()[i] - alpha * plain.data()[i]) <= 64 * epsilon<R>);
      }
    };
    check(false, rows, spectra);
    check(true, spectra, rows);
  }
}
