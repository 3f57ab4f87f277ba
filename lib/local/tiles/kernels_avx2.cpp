// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/arrays/arrival_loops.hpp"
#include "local/arrays/correlate_loops.hpp"
#include "local/tiles/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 32, widest_forward = 4, most_y = 12, most_pairs = 0, least_time = 4;

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

  [[gnu::always_inline]] static inline auto widen(const HighHalf* from, double) {
    return _mm256_slli_epi64(_mm256_cvtepu32_epi64(loaded<16>(from)), 32);
  }
  [[gnu::always_inline]] static inline auto widen(const float* from, double) {
    return _mm256_cvtps_pd(_mm_loadu_ps(from));
  }
  [[gnu::always_inline]] static inline auto widen(const Bfloat16* from, double) {
    const __m256i bits = _mm256_slli_epi64(_mm256_cvtepi16_epi64(loaded<8>(from)), bfloat16_shift);
    return _mm256_castsi256_pd(_mm256_and_si256(bits, _mm256_set1_epi64x(bfloat16_mask))) *
           _mm256_set1_pd(bfloat16_scale);
  }
  [[gnu::always_inline]] static inline auto widen(const Bfloat16* from, float) {
    return _mm256_slli_epi32(_mm256_cvtepu16_epi32(loaded<16>(from)), 16);
  }

 private:
  template <std::size_t bytes>
  [[gnu::always_inline]] static inline __m128i loaded(const void* from) {
    __m128i vector{};
    __builtin_memcpy(&vector, from, bytes);
    return vector;
  }
};

template <class R>
constexpr RealKernels<R> loops{{TileLoops<Isa, R, 3>::kernels(), TileLoops<Isa, R, 2>::kernels()},
                               CorrelateLoops<Isa, R>::correlate,
                               CorrelateLoops<Isa, R>::correlate_neighbours,
                               CorrelateLoops<Isa, R>::correlate_rows,
                               CorrelateLoops<Isa, R>::add_stencil,
                               ArrivalLoops<Isa, R>::find};

}  // namespace

// Measured on a Zen 4 core with OpenBLAS 0.3.21. To repeat it, run this on one rank with
// GRIDLOPS_KERNELS=avx2, and with blas:
//   gridlops-bench matmul --rows 4096 --cols 2048 --rhs 1,2,4,8,16,32,64 --both --storage columns
extern const KernelSet kernels_avx2;
constinit const KernelSet kernels_avx2{"avx2",         "AVX2",           {loops<float>, loops<double>},
                                       {6, 12, 12, 8}, {32, 32, 16, 24}, {"Haswell", "Zen", "Excavator"}};

}  // namespace gridlops
