// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "ops/array/run_operator.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

namespace {

RunMatrix linear_weights(const std::vector<double>& positions, Index n) {
  RunMatrix matrix(n);
  for (const double position : positions) {
    const double before = std::floor(position), weight = position - before;
    matrix.add_row(static_cast<Index>(before),
                   weight == 0 ? std::vector{1.0} : std::vector{1 - weight, weight});
  }
  return matrix;
}

/// The matrix of sin(π(p − j)) / (π(p − j)), in columns.
template <Scalar T>
std::vector<T> sinc_weights(const std::vector<double>& positions, Index n) {
  std::vector<T> weights;
  for (Index j = 0; j < n; ++j) {
    for (const double position : positions) {
      const double distance = std::numbers::pi * (position - static_cast<double>(j));
      weights.push_back(to_scalar<T>(distance == 0 ? 1 : std::sin(distance) / distance));
    }
  }
  return weights;
}

}  // namespace

Space interpolated_space(const Space& space, int dim, const std::vector<double>& positions) {
  require_dim(space, dim, "an interpolation");
  const Index last = space.dims.size(dim) - 1;
  std::vector<Index> before;
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const double position = positions[k];
    require<UsageError>(
        0 <= position && position <= static_cast<double>(last) && (k == 0 || positions[k - 1] < position),
        "position number ", k, " of an interpolation is ", position,
        "; positions must increase and be from 0 to ", last, ", the last sample's");
    before.push_back(static_cast<Index>(position));
  }
  return space_of_samples(space, dim, before);
}

template <Scalar T>
OperatorPtr<T> interpolation(const Space& space, int dim, const std::vector<double>& positions,
                             Interpolation kind) {
  const Space range = interpolated_space(space, dim, positions);
  const Index n = space.dims.size(dim), count = range.dims.size(dim);
  if (kind == Interpolation::linear) return run_operator<T>(range, space, dim, linear_weights(positions, n));
  const std::vector<T> weights = sinc_weights<T>(positions, n);
  OperatorPtr<T> product_of_all = matrix_along<T>(space, dim, {weights.data(), count, n});
  if (product_of_all->range() == range) return product_of_all;
  return product(identity<T>(range, product_of_all->range()), product_of_all);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> interpolation(const Space&, int, const std::vector<double>&, Interpolation);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
