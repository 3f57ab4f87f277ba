// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/blas/cblas.hpp"

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
void dsyevd_(const char* job, const char* uplo, const gridlops::cblas::Int* n, double* A,
             const gridlops::cblas::Int* lda, double* w, double* work, const gridlops::cblas::Int* lwork,
             gridlops::cblas::Int* iwork, const gridlops::cblas::Int* liwork, gridlops::cblas::Int* info,
             std::size_t job_length, std::size_t uplo_length);
void zheevd_(const char* job, const char* uplo, const gridlops::cblas::Int* n, std::complex<double>* A,
             const gridlops::cblas::Int* lda, double* w, std::complex<double>* work,
             const gridlops::cblas::Int* lwork, double* rwork, const gridlops::cblas::Int* lrwork,
             gridlops::cblas::Int* iwork, const gridlops::cblas::Int* liwork, gridlops::cblas::Int* info,
             std::size_t job_length, std::size_t uplo_length);
void dpotrf_(const char* uplo, const gridlops::cblas::Int* n, double* A, const gridlops::cblas::Int* lda,
             gridlops::cblas::Int* info, std::size_t uplo_length);
void zpotrf_(const char* uplo, const gridlops::cblas::Int* n, std::complex<double>* A,
             const gridlops::cblas::Int* lda, gridlops::cblas::Int* info, std::size_t uplo_length);
void dtrtri_(const char* uplo, const char* diag, const gridlops::cblas::Int* n, double* A,
             const gridlops::cblas::Int* lda, gridlops::cblas::Int* info, std::size_t uplo_length,
             std::size_t diag_length);
void ztrtri_(const char* uplo, const char* diag, const gridlops::cblas::Int* n, std::complex<double>* A,
             const gridlops::cblas::Int* lda, gridlops::cblas::Int* info, std::size_t uplo_length,
             std::size_t diag_length);
void dtrcon_(const char* norm, const char* uplo, const char* diag, const gridlops::cblas::Int* n,
             const double* A, const gridlops::cblas::Int* lda, double* rcond, double* work,
             gridlops::cblas::Int* iwork, gridlops::cblas::Int* info, std::size_t norm_length,
             std::size_t uplo_length, std::size_t diag_length);
void ztrcon_(const char* norm, const char* uplo, const char* diag, const gridlops::cblas::Int* n,
             const std::complex<double>* A, const gridlops::cblas::Int* lda, double* rcond,
             std::complex<double>* work, double* rwork, gridlops::cblas::Int* info, std::size_t norm_length,
             std::size_t uplo_length, std::size_t diag_length);
void dtpqrt_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, const gridlops::cblas::Int* l,
             const gridlops::cblas::Int* nb, double* A, const gridlops::cblas::Int* lda, double* B,
             const gridlops::cblas::Int* ldb, double* T, const gridlops::cblas::Int* ldt, double* work,
             gridlops::cblas::Int* info);
void ztpqrt_(const gridlops::cblas::Int* m, const gridlops::cblas::Int* n, const gridlops::cblas::Int* l,
             const gridlops::cblas::Int* nb, std::complex<double>* A, const gridlops::cblas::Int* lda,
             std::complex<double>* B, const gridlops::cblas::Int* ldb, std::complex<double>* T,
             const gridlops::cblas::Int* ldt, std::complex<double>* work, gridlops::cblas::Int* info);
}

namespace gridlops::lapack {

// One name for double and std::complex<double>. Matrices are small, column-major and in host memory.

/// X = Q R with as many columns of Q, in their place, as the smaller of X's dimensions; R, if its view has
/// data, gets their rows, and zeros below its diagonal.
template <class S>
void orthonormalise(MatrixView<S> X, MatrixView<S> R = {}) {
  const Index columns = std::min(X.rows, X.cols);
  const auto m = static_cast<cblas::Int>(X.rows), n = static_cast<cblas::Int>(X.cols),
             k = static_cast<cblas::Int>(columns),
             lda = static_cast<cblas::Int>(std::max<Index>(X.stride, 1));
  const cblas::Int length = 32 * std::max<cblas::Int>(n, 1);
  std::vector<S> tau(at(columns)), work(at(length));
  cblas::Int info = 0;
  if constexpr (is_complex<S>) {
    zgeqrf_(&m, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
  } else {
    dgeqrf_(&m, &n, X.data, &lda, tau.data(), work.data(), &length, &info);
  }
  if (R.data != nullptr)
    for (Index j = 0; j < X.cols; ++j)
      for (Index i = 0; i < columns; ++i) R(i, j) = i <= j ? X(i, j) : S(0);
  if constexpr (is_complex<S>) {
    zungqr_(&m, &k, &k, X.data, &lda, tau.data(), work.data(), &length, &info);
  } else {
    dorgqr_(&m, &k, &k, X.data, &lda, tau.data(), work.data(), &length, &info);
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
    const auto lda = static_cast<cblas::Int>(std::max<Index>(A.stride, 1));
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
/// Computes singular values without U and Vh.
template <class S>
bool singular_values(MatrixView<S> A, double* s) {
  return SingularValueCall<S>(A.rows, A.cols, false).run(A, s, nullptr, nullptr);
}

/// G = V diag(w) Vᴴ of a Hermitian matrix, of which the upper triangle is read: w in ascending order, and V
/// in the place of G. Returns whether the iteration converged. Takes memory for 2n² elements, which LAPACK
/// counts in 32 bits.
template <class S>
bool eigenvectors(MatrixView<S> G, double* w) {
  const auto n = static_cast<cblas::Int>(G.rows), lda = static_cast<cblas::Int>(std::max<Index>(G.stride, 1)),
             few = 5 * n + 3, many = (2 * n + 6) * n + 1;
  std::vector<cblas::Int> iwork(at(few));
  cblas::Int info = 0;
  if constexpr (is_complex<S>) {
    const cblas::Int length = (n + 2) * n + 1;
    std::vector<S> work(at(length));
    std::vector<double> real_work(at(many));
    zheevd_("V", "U", &n, G.data, &lda, w, work.data(), &length, real_work.data(), &many, iwork.data(), &few,
            &info, 1, 1);
  } else {
    std::vector<S> work(at(many));
    dsyevd_("V", "U", &n, G.data, &lda, w, work.data(), &many, iwork.data(), &few, &info, 1, 1);
  }
  return info == 0;
}

/// The upper triangle of G becomes R with RᴴR = G; the lower one is not touched. Returns whether G was
/// positive definite. If not, its upper triangle is meaningless.
template <class S>
bool cholesky(MatrixView<S> G) {
  const auto n = static_cast<cblas::Int>(G.rows), lda = static_cast<cblas::Int>(std::max<Index>(G.stride, 1));
  cblas::Int info = 0;
  if constexpr (is_complex<S>) {
    zpotrf_("U", &n, G.data, &lda, &info, 1);
  } else {
    dpotrf_("U", &n, G.data, &lda, &info, 1);
  }
  return info == 0;
}

/// The upper triangle of R becomes that of R⁻¹; the lower one is not touched. Returns whether no element of
/// the diagonal was 0.
template <class S>
bool invert_upper(MatrixView<S> R) {
  const auto n = static_cast<cblas::Int>(R.rows), lda = static_cast<cblas::Int>(std::max<Index>(R.stride, 1));
  cblas::Int info = 0;
  if constexpr (is_complex<S>) {
    ztrtri_("U", "N", &n, R.data, &lda, &info, 1, 1);
  } else {
    dtrtri_("U", "N", &n, R.data, &lda, &info, 1, 1);
  }
  return info == 0;
}

/// An estimate of ‖R‖₁‖R⁻¹‖₁ for the upper triangle R of a matrix, infinite if R is singular.
template <class S>
double condition_of_upper(MatrixView<const S> R) {
  const auto n = static_cast<cblas::Int>(R.rows), lda = static_cast<cblas::Int>(std::max<Index>(R.stride, 1));
  std::vector<S> work(at(is_complex<S> ? 2 * R.rows : 3 * R.rows));
  cblas::Int info = 0;
  double reciprocal = 0;
  if constexpr (is_complex<S>) {
    std::vector<double> real_work(at(R.rows));
    ztrcon_("1", "U", "N", &n, R.data, &lda, &reciprocal, work.data(), real_work.data(), &info, 1, 1, 1);
  } else {
    std::vector<cblas::Int> int_work(at(R.rows));
    dtrcon_("1", "U", "N", &n, R.data, &lda, &reciprocal, work.data(), int_work.data(), &info, 1, 1, 1);
  }
  return 1 / reciprocal;
}

/// The columns that append_rows() reflects together, and the elements of memory that it takes.
constexpr Index reflected_columns(Index n) { return std::clamp<Index>(n, 1, 32); }
constexpr Index elements_to_append(Index n) { return 2 * reflected_columns(n) * n; }

/// R ← the triangle of the QR factorisation of [R; B], for an upper triangular n × n matrix R, whose lower
/// triangle is not touched. Overwrites B, which is upper triangular, too, if is_triangle says so.
template <class S>
void append_rows(MatrixView<S> R, MatrixView<S> B, bool is_triangle, S* memory) {
  if (R.cols == 0 || B.rows == 0) return;
  const auto m = static_cast<cblas::Int>(B.rows), n = static_cast<cblas::Int>(R.cols),
             l = is_triangle ? n : cblas::Int{0}, nb = static_cast<cblas::Int>(reflected_columns(R.cols)),
             ldr = static_cast<cblas::Int>(R.stride), ldb = static_cast<cblas::Int>(B.stride);
  cblas::Int info = 0;
  S* const work = memory + reflected_columns(R.cols) * R.cols;
  if constexpr (is_complex<S>) {
    ztpqrt_(&m, &n, &l, &nb, R.data, &ldr, B.data, &ldb, memory, &nb, work, &info);
  } else {
    dtpqrt_(&m, &n, &l, &nb, R.data, &ldr, B.data, &ldb, memory, &nb, work, &info);
  }
}

}  // namespace gridlops::lapack
