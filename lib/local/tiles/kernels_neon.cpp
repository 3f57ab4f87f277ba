// SPDX-License-Identifier: BSD-3-Clause
#include <arm_neon.h>

#include "local/arrays/arrival_loops.hpp"
#include "local/arrays/correlate_loops.hpp"
#include "local/tiles/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 16, widest_forward = 6, most_y = 8, most_pairs = 0, least_time = 4;

  [[gnu::always_inline]] static inline void add_product(float32x4_t a, float32x4_t b, auto& sum) {
    sum = vfmaq_f32(sum, a, b);
  }
  [[gnu::always_inline]] static inline void add_product(float64x2_t a, float64x2_t b, auto& sum) {
    sum = vfmaq_f64(sum, a, b);
  }
};

template <class R>
constexpr RealKernels<R> loops{{TileLoops<Isa, R, 4>::kernels(), TileLoops<Isa, R, 3>::kernels()},
                               CorrelateLoops<Isa, R>::correlate,
                               CorrelateLoops<Isa, R>::correlate_neighbours,
                               CorrelateLoops<Isa, R>::correlate_rows,
                               CorrelateLoops<Isa, R>::add_stencil,
                               ArrivalLoops<Isa, R>::find};

}  // namespace

extern const KernelSet kernels_neon;
constinit const KernelSet kernels_neon{"neon", "NEON", {loops<float>, loops<double>}};

}  // namespace gridlops
