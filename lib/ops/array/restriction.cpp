// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "ops/array/run_operator.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

Space restricted_space(const Space& space, int dim, const std::vector<Index>& indices) {
  require_dim(space, dim, "a restriction");
  const Index size = space.dims.size(dim);
  for (std::size_t k = 0; k < indices.size(); ++k)
    require<UsageError>(0 <= indices[k] && indices[k] < size && (k == 0 || indices[k - 1] < indices[k]),
                        "index number ", k, " of a restriction is ", indices[k],
                        "; indices must increase and be from 0 to ", size - 1);
  return space_of_samples(space, dim, indices);
}

template <Scalar T>
OperatorPtr<T> restriction(const Space& space, int dim, const std::vector<Index>& indices) {
  const Space kept = restricted_space(space, dim, indices);
  return run_operator<T>(kept, space, dim, RunMatrix::selection(indices, space.dims.size(dim)));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> restriction(const Space&, int, const std::vector<Index>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
