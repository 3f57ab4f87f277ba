// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/skinny_strip_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 32;

  [[gnu::always_inline]] static inline void add_product(__m256 a, __m256 b, auto& sum) {
    sum = _mm256_fmadd_ps(a, b, sum);
  }
  [[gnu::always_inline]] static inline void add_product(__m256d a, __m256d b, auto& sum) {
    sum = _mm256_fmadd_pd(a, b, sum);
  }
};

template <class Real>
constexpr StripKernels<Real> strip_table = StripLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const StripKernels<Real>& strip_kernels_avx2() {
  return strip_table<Real>;
}

template const StripKernels<float>& strip_kernels_avx2();
template const StripKernels<double>& strip_kernels_avx2();

}  // namespace gridlops
