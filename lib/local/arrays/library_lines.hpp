// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>

#include "gridlops/base/types.hpp"

namespace gridlops {

// Transforms of single lines by a library, at the lengths that it is good at. Two sources implement this, of
// which the build chooses one: library_lines_fftw.cpp and library_lines_kissfft.cpp. The rules for lines are
// those of fast_fourier.hpp, but there is no scratch memory. Reasons:
// docs/decisions/0021-fourier-transforms.md.

template <class R>
class ComplexLine {
 public:
  virtual ~ComplexLine() = default;
  virtual void forward(const std::complex<R>* in, std::complex<R>* out) const = 0;
  virtual void backward(const std::complex<R>* in, std::complex<R>* out) const = 0;
};

template <class R>
class RealLine {
 public:
  virtual ~RealLine() = default;
  virtual void forward(const R* in, std::complex<R>* out) const = 0;
  virtual void backward(std::complex<R>* in, R* out) const = 0;
};

/// Null if other ways to transform n samples are faster, or if the library has none. Throws std::bad_alloc,
/// and errors of the library, on this rank alone.
template <class R>
std::unique_ptr<const ComplexLine<R>> library_line(Index n);
template <class R>
std::unique_ptr<const RealLine<R>> library_real_line(Index n);

/// A line with a larger prime factor is a convolution; smaller ones than this are split off by the
/// definition. That is where both took about the same time: 41 with FFTW, 127 with KISS FFT. At most
/// `most_step`.
Index largest_step();
inline constexpr Index most_step = 127;

/// The length ≥ n of the complex lines that the library transforms fastest.
Index convolution_length(Index n);

}  // namespace gridlops
