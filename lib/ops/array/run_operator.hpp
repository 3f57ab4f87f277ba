// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/ops/linear_operator.hpp"
#include "ops/array/run_matrix.hpp"

namespace gridlops {

/// The space of arrays that have, along one dimension, a sample for each of these indices, which do not
/// decrease. Each rank has the samples of its own indices.
Space space_of_samples(const Space& space, int dim, const std::vector<Index>& indices);

/// The product with a matrix along one dimension. All its rows have elements. Not collective.
template <Scalar T>
OperatorPtr<T> run_operator(const Space& range, const Space& domain, int dim, const RunMatrix& matrix);

}  // namespace gridlops
