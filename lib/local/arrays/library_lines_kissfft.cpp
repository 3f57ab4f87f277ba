// SPDX-License-Identifier: BSD-3-Clause
// Transforms of complex lines by KISS FFT, of lengths with the prime factors 2, 3 and 5. It is slow at
// others, and not thread-safe.
#include <kissfft.hh>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/local/backend.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "local/arrays/library_lines.hpp"

namespace gridlops {

namespace {

template <class R>
class KissLine final : public ComplexLine<R> {
 public:
  explicit KissLine(Index n) : forward_(at(n), false), backward_(at(n), true) {}
  void forward(const std::complex<R>* in, std::complex<R>* out) const override {
    forward_.transform(in, out);
  }
  void backward(const std::complex<R>* in, std::complex<R>* out) const override {
    backward_.transform(in, out);
  }

 private:
  kissfft<R> forward_, backward_;
};

}  // namespace

std::string fft_library() { return message("KISS FFT ", GRIDLOPS_KISSFFT_VERSION, ", BSD-3-Clause"); }

template <class R>
std::unique_ptr<const ComplexLine<R>> library_line(Index n) {
  if (n == 1 || rough_part(n) > 1) return nullptr;
  return std::make_unique<KissLine<R>>(n);
}

template <class R>
std::unique_ptr<const RealLine<R>> library_real_line(Index) {
  return nullptr;
}

Index largest_step() { return 127; }

/// The last factor's step, which is repeated most often, is the fastest for 5: measured, lines without that
/// factor take 1.5 times as long.
Index convolution_length(Index n) { return 5 * fast_length((n + 4) / 5); }

template std::unique_ptr<const ComplexLine<float>> library_line(Index);
template std::unique_ptr<const ComplexLine<double>> library_line(Index);
template std::unique_ptr<const RealLine<float>> library_real_line(Index);
template std::unique_ptr<const RealLine<double>> library_real_line(Index);

}  // namespace gridlops
