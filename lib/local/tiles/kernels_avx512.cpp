// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/arrays/arrival_loops.hpp"
#include "local/arrays/correlate_loops.hpp"
#include "local/tiles/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 64, widest_forward = 8, most_y = 24, most_pairs = 4, least_time = 8;

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

  // Masks of all lanes, because some compilers warn of the other forms.
  [[gnu::always_inline]] static inline auto widen(const HighHalf* from, double) {
    return _mm512_maskz_slli_epi64(0xff, _mm512_maskz_cvtepu32_epi64(0xff, loaded<__m256i>(from)), 32);
  }
  [[gnu::always_inline]] static inline auto widen(const float* from, double) {
    return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(from));
  }
  [[gnu::always_inline]] static inline auto widen(const Bfloat16* from, double) {
    const __m512i wide = _mm512_maskz_cvtepi16_epi64(0xff, loaded<__m128i>(from)),
                  bits = _mm512_maskz_slli_epi64(0xff, wide, bfloat16_shift);
    return _mm512_castsi512_pd(_mm512_maskz_and_epi64(0xff, bits, _mm512_set1_epi64(bfloat16_mask))) *
           _mm512_set1_pd(bfloat16_scale);
  }
  [[gnu::always_inline]] static inline auto widen(const Bfloat16* from, float) {
    return _mm512_maskz_slli_epi32(0xffff, _mm512_maskz_cvtepu16_epi32(0xffff, loaded<__m256i>(from)), 16);
  }

 private:
  template <class Vector>
  [[gnu::always_inline]] static inline Vector loaded(const void* from) {
    Vector vector;
    __builtin_memcpy(&vector, from, sizeof vector);
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
// GRIDLOPS_KERNELS=avx512, and with blas:
//   gridlops-bench matmul --rows 4096 --cols 2048 --rhs 1,2,4,8,16,32,64 --both --storage columns
extern const KernelSet kernels_avx512;
constinit const KernelSet kernels_avx512{
    "avx512",         "AVX-512",        {loops<float>, loops<double>},
    {64, 20, 24, 12}, {64, 48, 32, 64}, {"SkylakeX", "Cooperlake", "SapphireRapids"}};

}  // namespace gridlops
