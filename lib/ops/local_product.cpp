// SPDX-License-Identifier: BSD-3-Clause
#include "ops/local_product.hpp"

#include <algorithm>

#include "base/instantiate.hpp"
#include "local/stable_gemm.hpp"

namespace gridlops {

// Also where no group needs filling up now: columns may leave later.
template <Scalar T>
void LocalProduct<T>::reserve(Index rows_of_X, Index rows_of_Y) const {
  if (!pads()) return;
  padded_X_.reserve(backend_, rows_of_X * group);
  padded_Y_.reserve(backend_, rows_of_Y * group);
}

template <Scalar T>
void LocalProduct<T>::multiply(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta,
                               MatrixView<T> Y) const {
  const Kernels<T>& kernels = backend_->kernels<T>();
  if (!column_stable_) {
    kernels.gemm(op, Op::none, alpha, A, X, beta, Y);
    return;
  }
  if (!pads()) return stable_gemm(op, alpha, A, X, beta, Y);
  for (Index begin = 0; begin < X.cols; begin += group) {
    const Range columns{begin, std::min(group, X.cols - begin)};
    MatrixView<const T> X_group = X.col_block(columns);
    MatrixView<T> Y_group = Y.col_block(columns);
    if (columns.size == group) {
      kernels.gemm(op, Op::none, alpha, A, X_group, beta, Y_group);
      continue;
    }
    const MatrixView<T> X_padded = padded_X_.matrix(X.rows, group);
    const MatrixView<T> Y_padded = padded_Y_.matrix(Y.rows, group);
    const MatrixView<T> Y_used = Y_padded.col_block({0, columns.size});
    kernels.copy(X_group, X_padded.col_block({0, columns.size}));
    kernels.fill(T(0), X_padded.col_block({columns.size, group - columns.size}));
    kernels.fill(T(0), Y_padded.col_block({columns.size, group - columns.size}));
    if (beta != T(0)) kernels.copy(Y_group, Y_used);
    kernels.gemm(op, Op::none, alpha, A, X_padded, beta, Y_padded);
    kernels.copy(Y_used, Y_group);
  }
}

#define GRIDLOPS_INSTANTIATE(T) template class LocalProduct<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
