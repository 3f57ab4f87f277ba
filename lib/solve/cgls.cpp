// SPDX-License-Identifier: BSD-3-Clause
#include "solve/cgls.hpp"

namespace gridlops {

template <Scalar T>
SolveReport cgls(const LinearOperator<T>& A, const DistMatrix<T>& B, DistMatrix<T>& X,
                 const SolveOptions& options) {
  Cgls<T> method(A, options.damp);
  return solve_columns(method, B, X, options);
}

template SolveReport cgls(const LinearOperator<float>&, const DistMatrix<float>&, DistMatrix<float>&,
                          const SolveOptions&);
template SolveReport cgls(const LinearOperator<double>&, const DistMatrix<double>&, DistMatrix<double>&,
                          const SolveOptions&);
template SolveReport cgls(const LinearOperator<std::complex<float>>&, const DistMatrix<std::complex<float>>&,
                          DistMatrix<std::complex<float>>&, const SolveOptions&);
template SolveReport cgls(const LinearOperator<std::complex<double>>&,
                          const DistMatrix<std::complex<double>>&, DistMatrix<std::complex<double>>&,
                          const SolveOptions&);

}  // namespace gridlops
