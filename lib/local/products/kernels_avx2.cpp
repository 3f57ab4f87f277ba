// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/arrays/correlate_loops.hpp"
#include "local/products/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 32, row_vectors = 3, widest_forward = 4, most_y = 12;
  static constexpr bool keeps_y = false;

  [[gnu::always_inline]] static inline void add_product(__m256 a, __m256 b, auto& sum) {
    sum = _mm256_fmadd_ps(a, b, sum);
  }
  [[gnu::always_inline]] static inline void add_product(__m256d a, __m256d b, auto& sum) {
    sum = _mm256_fmadd_pd(a, b, sum);
  }
  template <int bytes>
  [[gnu::always_inline]] static inline __m256 spread(const void* from) {
    static_assert(bytes == 16);
    return _mm256_broadcast_ps(static_cast<const __m128*>(from));
  }
};

template <class R>
constexpr TileKernels<R> table = TileLoops<Isa, R>::kernels();

/// For correlations.
struct Reach {
  static constexpr std::size_t vector_bytes = 32, vectors = 8;
};

}  // namespace

template <class R>
const TileKernels<R>& tile_kernels_avx2() {
  return table<R>;
}

template const TileKernels<float>& tile_kernels_avx2();
template const TileKernels<double>& tile_kernels_avx2();

template <class R>
Correlate<R> correlate_avx2() {
  return CorrelateLoops<Reach, R>::correlate;
}

template Correlate<float> correlate_avx2();
template Correlate<double> correlate_avx2();

}  // namespace gridlops
