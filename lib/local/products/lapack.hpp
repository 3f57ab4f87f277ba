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

/// A call of xGESDD and the memory that it works in. vectors: U and Vh are computed, too.
template <class S>
class SingularValueCall {
 public:
  SingularValueCall(Index m, Index n, bool vectors)
      : m_(static_cast<cblas::Int>(m)), n_(static_cast<cblas::Int>(n)), vectors_(vectors) {
    MatrixView<S> none{nullptr, m, n};
    S best{};
    call(none, nullptr, nullptr, nullptr, &best, -1, nullptr, nullptr);
    length_ = static_cast<cblas::Int>(std::real(best));
  }

  Index bytes() const {
    return length_ * Index{sizeof(S)} + real_length() * Index{sizeof(double)} +
           8 * Index{std::min(m_, n_)} * Index{sizeof(cblas::Int)};
  }
  /// Returns whether the iteration converged. Overwrites A.
  bool run(MatrixView<S> A, double* s, S* U, S* Vh) const {
    std::vector<S> work(static_cast<std::size_t>(length_));
    std::vector<double> real_work(static_cast<std::size_t>(real_length()));
    std::vector<cblas::Int> iwork(8 * static_cast<std::size_t>(std::min(m_, n_)));
    return call(A, s, U, Vh, work.data(), length_, real_work.data(), iwork.data()) == 0;
  }

 private:
  Index real_length() const {
    const Index k = std::min(m_, n_), most = std::max(m_, n_);
    if (!is_complex<S>) return 0;
    return vectors_ ? k * std::max(5 * k + 7, 2 * most + 2 * k + 1) : 7 * k;
  }
  cblas::Int call(MatrixView<S> A, double* s, S* U, S* Vh, S* work, cblas::Int length, double* real_work,
                  cblas::Int* iwork) const {
    const char* job = vectors_ ? "S" : "N";
    const auto lda = static_cast<cblas::Int>(A.stride);
    const cblas::Int k = std::min(m_, n_);
    cblas::Int info = 0;
    if constexpr (is_complex<S>) {
      zgesdd_(job, &m_, &n_, A.data, &lda, s, U, &m_, Vh, &k, work, &length, real_work, iwork, &info, 1);
    } else {
      static_cast<void>(real_work);
      dgesdd_(job, &m_, &n_, A.data, &lda, s, U, &m_, Vh, &k, work, &length, iwork, &info, 1);
    }
    return info;
  }

  const cblas::Int m_, n_;
  const bool vectors_;
  cblas::Int length_ = 0;
};

/// A = U diag(s) Vh with the k = min(m, n) largest singular values, in descending order. Overwrites A.
/// Returns whether the iteration converged. U is m × k, and Vh k × n, without gaps.
template <class S>
bool singular_values(MatrixView<S> A, double* s, S* U, S* Vh) {
  return SingularValueCall<S>(A.rows, A.cols, true).run(A, s, U, Vh);
}
/// The same without U and Vh.
template <class S>
bool singular_values(MatrixView<S> A, double* s) {
  return SingularValueCall<S>(A.rows, A.cols, false).run(A, s, nullptr, nullptr);
}

}  // namespace gridlops::lapack
