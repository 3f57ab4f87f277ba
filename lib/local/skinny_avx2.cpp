// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/skinny_loops.hpp"
#include "local/skinny_strip_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 32;
  static constexpr int row_vectors = 2;

  [[gnu::always_inline]] static inline void add_product(__m256 a, __m256 b, auto& sum) {
    sum = _mm256_fmadd_ps(a, b, sum);
  }
  [[gnu::always_inline]] static inline void add_product(__m256d a, __m256d b, auto& sum) {
    sum = _mm256_fmadd_pd(a, b, sum);
  }
};

template <class Real>
constexpr SkinnyKernels<Real> table = SkinnyLoops<Isa, Real>::kernels();
template <class Real>
constexpr StripKernels<Real> strip_table = StripLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const SkinnyKernels<Real>& skinny_kernels_avx2() {
  return table<Real>;
}

template <class Real>
const StripKernels<Real>& strip_kernels_avx2() {
  return strip_table<Real>;
}

template const SkinnyKernels<float>& skinny_kernels_avx2();
template const SkinnyKernels<double>& skinny_kernels_avx2();
template const StripKernels<float>& strip_kernels_avx2();
template const StripKernels<double>& strip_kernels_avx2();

}  // namespace gridlops
