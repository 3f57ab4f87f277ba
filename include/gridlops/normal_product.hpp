// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/export.hpp"
#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Whether normal_product() takes this operator: matrix_mult() by stationary_a.
template <Scalar T>
GRIDLOPS_EXPORT bool has_normal_product(const LinearOperator<T>& A);

/// Q ← A P, U ← Aᴴ R, V ← Aᴴ Q (collective over the grid; idle ranks return at once).
/// P, U, V: in A.domain(); R, Q: in A.range(); the same column partitions. In host memory the operator stores
/// A anew at the first call, in panels of rows that stay in the cache between the product and the adjoint,
/// and gives up what it had (the caller's block, if A is a view, stays the caller's): memory then gives each
/// panel once. Over a grid row the product is summed some rows at a time, while the next ones are
/// multiplied; normal_product_cost() has what moves. A gain for a few columns, where reading A is what takes
/// the time; one_pass_is_faster() says when. On a GPU A stays as it is, and is read three times. Not counted
/// in activity(). Throws UsageError on all ranks unless has_normal_product(A), and ShapeError as apply()
/// does.
template <Scalar T>
GRIDLOPS_EXPORT void normal_product(const LinearOperator<T>& A, const DistMatrix<T>& P,
                                    const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                                    DistMatrix<T>& V);

}  // namespace gridlops
