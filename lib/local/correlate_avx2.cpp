// SPDX-License-Identifier: BSD-3-Clause
#include "local/correlate_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr std::size_t vector_bytes = 32, vectors = 8;
};

}  // namespace

template <class R>
Correlate<R> correlate_avx2() {
  return CorrelateLoops<Isa, R>::correlate;
}

template Correlate<float> correlate_avx2();
template Correlate<double> correlate_avx2();

}  // namespace gridlops
