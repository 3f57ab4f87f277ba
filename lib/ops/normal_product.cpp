// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/normal_product.hpp"

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "ops/one_pass.hpp"

namespace gridlops {

namespace {

template <Scalar T>
void require_layout(const DistMatrix<T>& X, const Space& space, const Partition& columns, const char* name) {
  require<ShapeError>(space.contains(X) && X.layout().cols.partition == columns, "normal product: ", name,
                      " is ", X.layout().describe(), ", but the operator takes ",
                      space.layout(columns).describe(),
                      " with as many columns as P; make it with the operator's own space");
}

}  // namespace

template <Scalar T>
bool has_normal_product(const LinearOperator<T>& A) {
  return dynamic_cast<const OnePass<T>*>(&A) != nullptr;
}

template <Scalar T>
void normal_product(const LinearOperator<T>& A, const DistMatrix<T>& P, const DistMatrix<T>& R,
                    DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V) {
  const ProcessGrid& grid = *A.domain().grid;
  require<UsageError>(
      has_normal_product(A),
      "this operator cannot form A P and its adjoint in one pass over A; use matrix_mult() by "
      "stationary_a, or apply() and apply_adjoint()");
  const Partition& columns = P.layout().cols.partition;
  require_layout(P, A.domain(), columns, "P");
  require_layout(R, A.range(), columns, "R");
  require_layout(Q, A.range(), columns, "Q");
  require_layout(U, A.domain(), columns, "U");
  require_layout(V, A.domain(), columns, "V");
  if (P.cols() == 0 || !grid.is_member()) return;
  const auto& one_pass = dynamic_cast<const OnePass<T>&>(A);
  one_pass.reserve_pass(columns);
  one_pass.pass_once(P, R, Q, U, V);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template bool has_normal_product(const LinearOperator<T>&);                                        \
  template void normal_product(const LinearOperator<T>&, const DistMatrix<T>&, const DistMatrix<T>&, \
                               DistMatrix<T>&, DistMatrix<T>&, DistMatrix<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
