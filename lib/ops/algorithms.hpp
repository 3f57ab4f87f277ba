// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_mult.hpp"

namespace gridlops {

// The algorithms behind matrix_mult(), one file each. A lies as matrix_layout() says; options are checked.

template <Scalar T>
OperatorPtr<T> make_block_mult(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_summa(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options);
template <Scalar T>
OperatorPtr<T> make_stationary_b(DistMatrix<T> A, const MatrixMultOptions& options);

/// How sums over ranks are to be taken, so that columns are stable where that was asked for.
inline ReductionOrder reduction_order(const MatrixMultOptions& options) {
  return options.column_stable ? ReductionOrder::by_rank : ReductionOrder::any;
}

}  // namespace gridlops
