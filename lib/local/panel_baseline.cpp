// SPDX-License-Identifier: BSD-3-Clause
#include "local/panel_loops.hpp"

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
constexpr PanelKernels<Real> table = PanelLoops<Isa, Real>::kernels();

}  // namespace

template <class Real>
const PanelKernels<Real>& panel_kernels_baseline() {
  return table<Real>;
}

template const PanelKernels<float>& panel_kernels_baseline();
template const PanelKernels<double>& panel_kernels_baseline();

}  // namespace gridlops
