// SPDX-License-Identifier: BSD-3-Clause
#include "ops/stored_block.hpp"

#include "base/instantiate.hpp"

namespace gridlops {

template <Scalar T>
void StoredBlock<T>::reserve(Op op) {
  if (wants_panels_) store_in_panels();
  const MatrixView<const T> A = std::as_const(A_).local();
  op == Op::none ? product_.reserve(A.cols, A.rows) : product_.reserve(A.rows, A.cols);
}

template <Scalar T>
void StoredBlock<T>::multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) {
  if (panels_.empty()) {
    product_.multiply(op, alpha, A_.local(), X, beta, Y);
  } else {
    panels_.multiply(op, alpha, X, beta, Y);
  }
}

template <Scalar T>
void StoredBlock<T>::store_in_panels() {
  const MatrixView<const T> A = std::as_const(A_).local();
  if (!panels_.empty() || A.empty() || backend()->memory_space() != MemorySpace::host) return;
  panels_ = PanelMatrix<T>(backend(), A, kernel_choice().set,
                           [this](Index cols) { A_.discard_local_columns(cols); });
  // Its shape is all that is needed of A from now on.
  A_ = DistMatrix<T>(A_.grid(), A_.layout(), MatrixView<T>(nullptr, A.rows, A.cols));
}

#define GRIDLOPS_INSTANTIATE(T) template class StoredBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
