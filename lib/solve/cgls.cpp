// SPDX-License-Identifier: BSD-3-Clause
#include "solve/cgls.hpp"

#include "base/instantiate.hpp"

namespace gridlops {

template <Scalar T>
SolveReport cgls(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  Cgls<T> method(A, options.damp);
  return solve_columns(method, B, X, options);
}

#define GRIDLOPS_INSTANTIATE(T)                                                                  \
  template SolveReport cgls(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&, \
                            const SolveOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
