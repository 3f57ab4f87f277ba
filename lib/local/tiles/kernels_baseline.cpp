// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/arrival_loops.hpp"
#include "local/arrays/correlate_loops.hpp"
#include "local/tiles/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 16, widest_forward = 4, most_y = 8, most_pairs = 0, least_time = 4;

  template <class Vector>
  [[gnu::always_inline]] static inline void add_product(const Vector& a, const Vector& b, Vector& sum) {
    sum += a * b;
  }
};

template <class R>
constexpr RealKernels<R> loops{{TileLoops<Isa, R, 2>::kernels(), TileLoops<Isa, R, 1>::kernels()},
                               CorrelateLoops<Isa, R>::correlate,
                               CorrelateLoops<Isa, R>::correlate_neighbours,
                               CorrelateLoops<Isa, R>::correlate_rows,
                               CorrelateLoops<Isa, R>::add_stencil,
                               ArrivalLoops<Isa, R>::find};

}  // namespace

extern const KernelSet kernels_baseline;
constinit const KernelSet kernels_baseline{"baseline", "baseline", {loops<float>, loops<double>}};

}  // namespace gridlops
