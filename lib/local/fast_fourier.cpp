// SPDX-License-Identifier: BSD-3-Clause
#include "local/fast_fourier.hpp"

#include <cmath>

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

template class FastFourier<float>;
template class FastFourier<double>;

}  // namespace gridlops
