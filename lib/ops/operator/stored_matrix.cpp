// SPDX-License-Identifier: BSD-3-Clause
#include "ops/operator/stored_matrix.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

template <Scalar T>
GivenMatrix<T>::GivenMatrix(DistMatrix<T> A) : A_(std::move(A)) {
  note_elements();
}

template <Scalar T>
void GivenMatrix<T>::note_elements() {
  const MatrixView<const T> block = std::as_const(A_).local();
  const bool is_there = block.data != nullptr || block.empty();
  if (check_level() == Check::all && is_there) hash_ = hash_of_block<T>(A_);
}

template <Scalar T>
void GivenMatrix<T>::require_unchanged() const {
  if (!hash_ || *hash_ == hash_of_block<T>(A_)) return;
  throw UsageError(message("elements of the ", A_.rows(), " x ", A_.cols(),
                           " matrix have changed since its operator was made, or since the last "
                           "matrix_changed(). The operator may have copies of the old ones, and its products "
                           "would mix old and new; call matrix_changed() on all ranks after each change"),
                   KnownTo::one_rank);
}

template <Scalar T>
void GivenMatrix<T>::note_change() {
  if (!A_.is_callers())
    throw UsageError(message("the ", A_.rows(), " x ", A_.cols(),
                             " matrix was moved into its operator, which owns it, so that nobody else may "
                             "change it; make the operator of a view of your own block, or make a new one"),
                     KnownTo::one_rank);
  note_elements();
}

template <Scalar T>
void GivenMatrix<T>::discard() {
  A_ = planned_matrix<T>(A_.grid(), A_.layout());
  hash_.reset();
}

#define GRIDLOPS_INSTANTIATE(T) template class GivenMatrix<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
