// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Computes a lower bound of ‖A‖₂ by `steps` steps of Golub–Kahan bidiagonalisation from a random start
/// (collective over the grid; the same on all members, 0 on idle ranks). It is within a per cent after 20
/// steps unless the largest singular values cluster.
template <Scalar T>
GRIDLOPS_EXPORT double estimate_norm(const LinearOperator<T>& A, int steps = 20, std::uint64_t seed = 1);

template <Scalar T>
struct DominantEigenpair {
  Accumulator<T> eigenvalue{};  ///< λ = vᴴAv
  double residual = 0;          ///< ‖Av − λv‖
  Index iterations = 0;
  bool converged = false;
  DistMatrix<T> vector;  ///< v, one column of norm 1, in the operator's domain
};

/// Finds the eigenvalue of largest modulus by power iteration from a random start (collective over the grid;
/// the same on all members, 0 on idle ranks). It has converged when ‖Av − λv‖ ≤ tolerance · |λ|. Then v is an
/// approximate eigenvector of A, and if A is Hermitian, it has an eigenvalue equally close to λ. The
/// iteration does not converge if different eigenvalues share the largest modulus, such as λ and −λ, or the
/// pairs of a real skew-symmetric A. The λ returned is then no eigenvalue. Shift A so that one of them is
/// larger, or use lanczos_extremes() if A is Hermitian. Throws ShapeError, on all ranks, unless A's domain is
/// its range.
template <Scalar T>
GRIDLOPS_EXPORT DominantEigenpair<T> power_iteration(const LinearOperator<T>& A, Index max_iterations = 100,
                                                     double tolerance = 1e-5, std::uint64_t seed = 1);

struct SpectrumExtremes {
  double smallest = 0;
  double largest = 0;
};

/// Estimates the smallest and the largest eigenvalue of a Hermitian A, both from inside the spectrum, by the
/// Lanczos method with full reorthogonalisation (Golub, Van Loan: Matrix Computations, §10.3) from a random
/// start; collective as above. It allocates and keeps `steps` vectors, but no more than the dimension. A few
/// steps are enough if the extreme eigenvalues are well separated. The function does not check that A is
/// Hermitian.
template <Scalar T>
GRIDLOPS_EXPORT SpectrumExtremes lanczos_extremes(const LinearOperator<T>& A, int steps = 30,
                                                  std::uint64_t seed = 1);

/// The usual probability of a wrong probable_sigma_min().
inline constexpr double sketch_failure = 1e-9;

/// Returns the rows of the sketch of a matrix with this many columns.
constexpr Index sketch_rows(Index cols) { return 4 * cols; }
/// The most columns that it multiplies at a time.
inline constexpr Index sketch_group = 64;

/// A number that the smallest singular value σ of A is probably not below (collective over the grid; the same
/// on all members, 0 on idle ranks): for any A that was chosen without knowing the seed it is larger than σ
/// with the probability of `failure` at most. It is about half of σ as a rule.
///
/// It comes from the sketch SA with a random S of s = sketch_rows(n) rows, whose elements are ±1/√s: if v is
/// the last singular vector, σ_min(SA) ≤ ‖SAv‖, and ‖SAv‖²/σ² has at most the tail of χ²_s/s (Achlioptas,
/// J. Comput. Syst. Sci. 66, 2003), which is above 1 + 2√(x/s) + 2x/s with the probability of e⁻ˣ at most
/// (Laurent, Massart: Ann. Statist. 28, 2000). Rounding may hide u√m‖A‖_F, a model as that of error_bounds();
/// where that is all, the number is 0.
///
/// Takes 4n columns of adjoint products, sketch_group at a time, and the singular values of SA on rank 0,
/// where SA takes 4n² numbers in double precision. NaN if products are not finite. Throws UsageError, on all
/// ranks, if A has fewer rows than the sketch would have, or unless 0 < failure < 1, and OutOfMemory on all.
template <Scalar T>
GRIDLOPS_EXPORT double probable_sigma_min(const LinearOperator<T>& A, double failure = sketch_failure,
                                          std::uint64_t seed = 1);

/// The bytes that probable_sigma_min() takes at most on the rank at (row, col) of the grid of A, besides the
/// memory of products with sketch_group columns. Not collective.
template <Scalar T>
GRIDLOPS_EXPORT Index probable_sigma_min_bytes(const LinearOperator<T>& A, int row, int col);

/// Computes a number that the smallest singular value σ of A is not below, for certain, or 0 where that
/// cannot be proven (collective over the grid; the same on all members, 0 on idle ranks). It is 0.9 of σ or
/// more where nu‖A‖_F‖A⁻¹‖_F, of complex matrices three times as much, is below 1/20, and 0 where that
/// reaches 1 (u = 10⁻¹⁶). That is n²uκ/2 at most, and nuκ or so if few singular values are as small as the
/// smallest, and few as large as the largest.
///
/// With X ≈ R⁻¹ for the triangle R of QR of A, or of Cholesky of AᴴA where that is accurate, and Y = fl(AX),
///
///   σ ≥ (√(1 − ‖I − YᴴY‖) − γₙ‖A‖_F‖X‖_F) / ‖X‖₂
///
/// since σ_min(AX) ≤ σ‖X‖₂. Nothing is assumed of R or X. Computed sums of k products are within γₖ of the
/// exact ones, relative to the sum of the products' sizes, in any order: so BLAS must multiply in the usual
/// way, without Strassen's or the 3M method. ‖X‖₂ is bounded by a computed Cholesky factor of νI − XᴴX and
/// what it differs by (after Rump: Verification of positive definiteness, BIT 46, 2006). All of this is in
/// double precision for every T. Of a compressed matrix it is a proof for its elements as they are computed.
///
/// Reads A two or three times, and takes about three times the operations of AᴴA. Throws UsageError, on all
/// ranks, if A has fewer rows than columns, is in the memory of a GPU, or is no matrix that never moves (see
/// factor()); OutOfMemory if a rank lacks memory. NaN if A, or its norm, is not finite.
template <Scalar T>
GRIDLOPS_EXPORT double proven_sigma_min(const LinearOperator<T>& A);

/// Returns the most bytes that proven_sigma_min() takes on a rank for a rows × cols matrix on this number of
/// ranks. Not collective.
GRIDLOPS_EXPORT Index proven_sigma_min_bytes(Index rows, Index cols, ScalarType type, int ranks);

}  // namespace gridlops
