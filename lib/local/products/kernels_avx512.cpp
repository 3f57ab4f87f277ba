// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/arrays/correlate_loops.hpp"
#include "local/products/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 64, row_vectors = 3, widest_forward = 8, most_y = 24;
  static constexpr bool keeps_y = true;

  [[gnu::always_inline]] static inline void add_product(__m512 a, __m512 b, auto& sum) {
    sum = _mm512_fmadd_ps(a, b, sum);
  }
  [[gnu::always_inline]] static inline void add_product(__m512d a, __m512d b, auto& sum) {
    sum = _mm512_fmadd_pd(a, b, sum);
  }
  template <int bytes>
  [[gnu::always_inline]] static inline auto spread(const void* from) {
    if constexpr (bytes == 16) {
      return _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(static_cast<const float*>(from)));
    } else {
      static_assert(bytes == 32);
      return _mm512_maskz_broadcast_f64x4(0xff, _mm256_loadu_pd(static_cast<const double*>(from)));
    }
  }
};

template <class R>
constexpr TileKernels<R> table = TileLoops<Isa, R>::kernels();

/// For correlations.
struct Reach {
  static constexpr std::size_t vector_bytes = 64, vectors = 8;
};

}  // namespace

template <class R>
const TileKernels<R>& tile_kernels_avx512() {
  return table<R>;
}

template const TileKernels<float>& tile_kernels_avx512();
template const TileKernels<double>& tile_kernels_avx512();

template <class R>
Correlate<R> correlate_avx512() {
  return CorrelateLoops<Reach, R>::correlate;
}

template Correlate<float> correlate_avx512();
template Correlate<double> correlate_avx512();

}  // namespace gridlops
