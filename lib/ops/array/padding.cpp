// SPDX-License-Identifier: BSD-3-Clause
#include "ops/array/padding.hpp"

#include <numeric>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"

namespace gridlops {

Space with_samples(const Space& space, int dim, Index n) {
  std::vector<Partition> cuts = space.dims.cuts();
  cuts[at(dim)] = Partition::balanced(n, 1);
  return array_space(space.grid, Dims(std::move(cuts)), space.rows.axis, space.columns);
}

template <Scalar T>
OperatorPtr<T> zero_padding(const Space& space, int dim, Index n) {
  std::vector<Index> kept(at(space.dims.size(dim)));
  std::iota(kept.begin(), kept.end(), Index{0});
  return adjoint(restriction<T>(with_samples(space, dim, n), dim, kept));
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> zero_padding(const Space&, int, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
