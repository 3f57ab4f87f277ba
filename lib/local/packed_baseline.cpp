// SPDX-License-Identifier: BSD-3-Clause
#include "local/packed_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 16;

  template <class Vector>
  [[gnu::always_inline]] static inline void add_product(const Vector& a, const Vector& b, Vector& sum) {
    sum += a * b;
  }
};

template <class Real>
constexpr PackedKernels<Real> table = PackedLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PackedKernels<Real>& packed_kernels_baseline() {
  return table<Real>;
}

template const PackedKernels<float>& packed_kernels_baseline();
template const PackedKernels<double>& packed_kernels_baseline();

}  // namespace gridlops
