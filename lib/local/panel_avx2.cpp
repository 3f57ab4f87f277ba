// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/panel_loops.hpp"

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
constexpr PanelKernels<Real> table = PanelLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PanelKernels<Real>& panel_kernels_avx2() {
  return table<Real>;
}

template const PanelKernels<float>& panel_kernels_avx2();
template const PanelKernels<double>& panel_kernels_avx2();

}  // namespace gridlops
