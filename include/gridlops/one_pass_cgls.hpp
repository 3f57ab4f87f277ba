// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/export.hpp"
#include "gridlops/solver.hpp"

namespace gridlops {

/// Least squares as cgls(), with its tests, verdicts and reports, but each iteration reads A once, if
/// A.has_one_pass(): with q = A p the same A.normal_product() gives Aᴴr and Aᴴq, and the next gradient is Aᴴr
/// − α Aᴴq − D²x. r itself is kept and updated, so that errors of earlier gradients are not carried on, as
/// they would be in a recurrence for the gradient alone: the iterates are as accurate as those of cgls().
/// Costs half as many operations again, so it is for a few columns only; one_pass_is_faster() says when.
template <Scalar T>
GRIDLOPS_EXPORT SolveReport one_pass_cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B,
                                          DistMatrix<T>& X, const SolveOptions& options = {});

}  // namespace gridlops
