// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/panel_loops.hpp"

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
constexpr PanelKernels<Real> table = PanelLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PanelKernels<Real>& panel_kernels_avx512() {
  return table<Real>;
}

template const PanelKernels<float>& panel_kernels_avx512();
template const PanelKernels<double>& panel_kernels_avx512();

}  // namespace gridlops
