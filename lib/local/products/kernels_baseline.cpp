// SPDX-License-Identifier: BSD-3-Clause
#include "local/arrays/correlate_loops.hpp"
#include "local/products/tile_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 16, row_vectors = 2, widest_forward = 4, most_y = 8;
  static constexpr bool keeps_y = false;

  template <class Vector>
  [[gnu::always_inline]] static inline void add_product(const Vector& a, const Vector& b, Vector& sum) {
    sum += a * b;
  }
};

template <class R>
constexpr TileKernels<R> table = TileLoops<Isa, R>::kernels();

/// For correlations.
struct Reach {
  static constexpr std::size_t vector_bytes = 16, vectors = 8;
};

}  // namespace

template <class R>
const TileKernels<R>& tile_kernels_baseline() {
  return table<R>;
}

template const TileKernels<float>& tile_kernels_baseline();
template const TileKernels<double>& tile_kernels_baseline();

template <class R>
Correlate<R> correlate_baseline() {
  return CorrelateLoops<Reach, R>::correlate;
}

template Correlate<float> correlate_baseline();
template Correlate<double> correlate_baseline();

}  // namespace gridlops
