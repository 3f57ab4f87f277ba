// SPDX-License-Identifier: BSD-3-Clause
#include "local/correlate_loops.hpp"

namespace gridlops {

namespace {

struct Isa {
  static constexpr std::size_t vector_bytes = 16, vectors = 8;
};

}  // namespace

template <class R>
Correlate<R> correlate_baseline() {
  return CorrelateLoops<Isa, R>::correlate;
}

template Correlate<float> correlate_baseline();
template Correlate<double> correlate_baseline();

}  // namespace gridlops
