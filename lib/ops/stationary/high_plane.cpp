// SPDX-License-Identifier: BSD-3-Clause
#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "ops/stationary/matrix_block.hpp"

namespace gridlops {

template <Scalar T>
OperatorPtr<T> high_plane(const OperatorPtr<T>& A) {
  const auto* const stored = dynamic_cast<const MatrixOperator<T>*>(A.get());
  require<UsageError>(stored != nullptr && stored->matrix_block()->is_in_planes(), "an operator of ",
                      A->rows(), " x ", A->cols(),
                      " has no high plane: matrix_mult() makes one that has, with Storage::planes");
  return stored->high_plane();
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> high_plane(const OperatorPtr<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
