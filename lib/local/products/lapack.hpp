// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/products/cblas.hpp"

// The functions of LAPACK that this library calls, by their Fortran names. The last argument is the length of
// a text.
extern "C" {
void dgeqrf_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, double* A,
             const gridlops::cblas::Int* lda, double* tau, double* work, const gridlops::cblas::Int* lwork,
             gridlops::cblas::Int* info);
void zgeqrf_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, std::complex<double>* A,
             const gridlops::cblas::Int* lda, std::complex<double>* tau, std::complex<double>* work,
             const gridlops::cblas::Int* lwork, gridlops::cblas::Int* info);
void dorgqr_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, const gridlops::cblas::Int* k,
             double* A, const gridlops::cblas::Int* lda, const double* tau, double* work,
             const gridlops::cblas::Int* lwork, gridlops::cblas::Int* info);
void zungqr_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, const gridlops::cblas::Int* k,
             std::complex<double>* A, const gridlops::cblas::Int* lda, const std::complex<double>* tau,
             std::complex<double>* work, const gridlops::cblas::Int* lwork, gridlops::cblas::Int* info);
void dgesdd_(const char* job, const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, double* A,
             const gridlops::cblas::Int* lda, double* s, double* U, const gridlops::cblas::Int* ldu,
             double* Vh, const gridlops::cblas::Int* ldvh, double* work, const gridlops::cblas::Int* lwork,
             gridlops::cblas::Int* iwork, gridlops::cblas::Int* info, std::size_t job_length);
void zgesdd_(const char* job, const gridlops::cblas::Int* m, const gridlops::cblas::Int* n,
             std::complex<double>* A, const gridlops::cblas::Int* lda, double* s, std::complex<double>* U,
             const gridlops::cblas::Int* ldu, std::complex<double>* Vh, const gridlops::cblas::Int* ldvh,
             std::complex<double>* work, const gridlops::cblas::Int* lwork, double* rwork,
             gridlops::cblas::Int* iwork, gridlops::cblas::Int* info, std::size_t job_length);
}

namespace gridlops::lapack {

// One name for double and std::complex<double>. Matrices are small, column-major and in host memory.

/// An orthonormal basis of the columns of X, at most as many as it has rows, in their place.
template <class S>
void orthonormalise(MatrixView<S> X) {
  const auto m = static_cast<cblas::Int>(X.rows), n = static_cast<cblas::Int>(X.cols),
             lda = static_cast<cblas::Int>(X.stride);
  const cblas::Int length = 32 * n;
  std::vector<S> tau(at(X.cols)), work(at(32 * X.cols));
  cblas::Int info = 0;
  if constexpr (is_complex<S>) {
    zgeqrf_(&m, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
    zungqr_(&m, &n, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
  } else {
    dgeqrf_(&m, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
    dorgqr_(&m, &n, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
  }
}

/// A = U diag(s) Vh with the k = min(m, n) largest singular values, in descending order. Overwrites A.
/// Returns whether the iteration converged. U is m × k, and Vh k × n, without gaps.
template <class S>
bool singular_values(MatrixView<S> A, double* s, S* U, S* Vh) {
  const auto m = static_cast<cblas::Int>(A.rows), n = static_cast<cblas::Int>(A.cols),
             lda = static_cast<cblas::Int>(A.stride), k = std::min(m, n), most = std::max(m, n);
  std::vector<cblas::Int> iwork(8 * static_cast<std::size_t>(k));
  cblas::Int length = -1, info = 0;
  S best{};
  std::vector<double> rwork;
  if constexpr (is_complex<S>)
    rwork.resize(static_cast<std::size_t>(k) *
                 static_cast<std::size_t>(std::max(5 * k + 7, 2 * most + 2 * k + 1)));
  const auto call = [&](S* work) {
    if constexpr (is_complex<S>) {
      zgesdd_("S", &m, &n, A.data, &lda, s, U, &m, Vh, &k, work, &length, rwork.data(), iwork.data(), &info,
              1);
    } else {
      dgesdd_("S", &m, &n, A.data, &lda, s, U, &m, Vh, &k, work, &length, iwork.data(), &info, 1);
    }
  };
  call(&best);
  length = static_cast<cblas::Int>(std::real(best));
  std::vector<S> work(static_cast<std::size_t>(length));
  call(work.data());
  return info == 0;
}

}  // namespace gridlops::lapack
