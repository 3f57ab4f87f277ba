// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/packed_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 64;

  [[gnu::always_inline]] static inline void add_product(__m512 a, __m512 b, auto& sum) {
    sum = _mm512_fmadd_ps(a, b, sum);
  }
  [[gnu::always_inline]] static inline void add_product(__m512d a, __m512d b, auto& sum) {
    sum = _mm512_fmadd_pd(a, b, sum);
  }
};

template <class Real>
constexpr PackedKernels<Real> table = PackedLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PackedKernels<Real>& packed_kernels_avx512() {
  return table<Real>;
}

template const PackedKernels<float>& packed_kernels_avx512();
template const PackedKernels<double>& packed_kernels_avx512();

}  // namespace gridlops
