// SPDX-License-Identifier: BSD-3-Clause
#include <immintrin.h>

#include "local/arrays/arrival_loops.hpp"
#include "local/arrays/correlate_loops.hpp"
#include "local/products/tile_loops.hpp"

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
