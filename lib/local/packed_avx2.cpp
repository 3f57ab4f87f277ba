// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/packed_loops.hpp"

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
constexpr PackedKernels<Real> table = PackedLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PackedKernels<Real>& packed_kernels_avx2() {
  return table<Real>;
}

template const PackedKernels<float>& packed_kernels_avx2();
template const PackedKernels<double>& packed_kernels_avx2();

}  // namespace gridlops
