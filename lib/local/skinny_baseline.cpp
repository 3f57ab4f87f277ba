// SPDX-License-Identifier: BSD-3-Clause
#include "local/skinny_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr int vector_bytes = 16;
  static constexpr int row_vectors = 2;

  template <class Vector>
  [[gnu::always_inline]] static inline void add_product(const Vector& a, const Vector& b, Vector& sum) {
    sum += a * b;
  }
};

template <class Real>
constexpr SkinnyKernels<Real> table = SkinnyLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const SkinnyKernels<Real>& skinny_kernels_baseline() {
  return table<Real>;
}

template const SkinnyKernels<float>& skinny_kernels_baseline();
template const SkinnyKernels<double>& skinny_kernels_baseline();

}  // namespace gridlops
