// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/fast_fourier.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <kissfft.hh>

#include "base/numbers.hpp"

namespace gridlops {

template <class R>
struct FastFourier<R>::Plans {
  explicit Plans(Index n) : forward(at(n), false), backward(at(n), true) {}
  kissfft<R> forward, backward;
};

template <class R>
FastFourier<R>::FastFourier(Index n) : plans_(std::make_unique<const Plans>(n)) {}
template <class R>
FastFourier<R>::~FastFourier() = default;

template <class R>
void FastFourier<R>::forward(const std::complex<R>* in, std::complex<R>* out) const {
  plans_->forward.transform(in, out);
}
template <class R>
void FastFourier<R>::backward(const std::complex<R>* in, std::complex<R>* out) const {
  plans_->backward.transform(in, out);
}

template <class R>
RealFourier<R>::RealFourier(Index n)
    : n_(n), complex_(n % 2 == 0 ? n / 2 : n), in_(at(n % 2 == 0 ? n / 2 : n)), out_(in_.size() + 1) {
  const double turn = -2 * std::numbers::pi / static_cast<double>(n);
  for (Index k = 0; k <= n / 2; ++k)
    turns_.push_back(static_cast<std::complex<R>>(std::polar(1.0, turn * static_cast<double>(k))));
}

// For even n, the even-numbered samples are the real parts of z and the odd-numbered ones its imaginary
// parts. With h = n/2 and Z'_k = conj Z_(h−k), their spectra are (Z + Z')/2 and (Z − Z')/2i.
template <class R>
void RealFourier<R>::forward(const R* in, std::complex<R>* out) {
  const Index h = n_ / 2;
  if (!is_even()) {
    std::copy_n(in, n_, in_.begin());
    complex_.forward(in_.data(), out_.data());
    std::copy_n(out_.begin(), h + 1, out);
    return;
  }
  complex_.forward(reinterpret_cast<const std::complex<R>*>(in), out_.data());
  out_[at(h)] = out_[0];
  for (Index k = 0; k <= h - k; ++k) {
    const std::complex<R> Z = R(0.5) * out_[at(k)], opposite = R(0.5) * std::conj(out_[at(h - k)]);
    const std::complex<R> even = Z + opposite, difference = Z - opposite;
    const std::complex<R> odd = product(turns_[at(k)], {difference.imag(), -difference.real()});
    out[k] = even + odd;
    out[h - k] = std::conj(even - odd);
  }
}

// The samples are a sum over a spectrum S of all n frequencies. If k and n − k differ, each gets one half of
// frequency k, conjugated at n − k; otherwise S has the real part.
template <class R>
void RealFourier<R>::backward(const std::complex<R>* in, R* out) {
  const Index h = n_ / 2;
  const auto S = [&](Index k) {
    return k == 0 || 2 * k == n_ ? std::complex<R>(std::real(in[k])) : R(0.5) * in[k];
  };
  if (!is_even()) {
    in_[0] = S(0);
    for (Index k = 1; k <= h; ++k) {
      in_[at(k)] = S(k);
      in_[at(n_ - k)] = std::conj(S(k));
    }
    complex_.backward(in_.data(), out_.data());
    std::transform(out_.begin(), out_.begin() + n_, out,
                   [](const std::complex<R>& x) { return std::real(x); });
    return;
  }
  for (Index k = 0; k < h; ++k) {
    const std::complex<R> here = S(k), opposite = std::conj(S(h - k));
    const std::complex<R> even = here + opposite, odd = product(std::conj(turns_[at(k)]), here - opposite);
    in_[at(k)] = {even.real() - odd.imag(), even.imag() + odd.real()};
  }
  complex_.backward(in_.data(), reinterpret_cast<std::complex<R>*>(out));
}

template class RealFourier<float>;
template class RealFourier<double>;
template class FastFourier<float>;
template class FastFourier<double>;

}  // namespace gridlops
