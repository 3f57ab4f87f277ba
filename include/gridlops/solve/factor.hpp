// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// The facts of a factor, the same on all members of the grid. Idle ranks know only of_data and damp.
struct FactorFacts {
  bool of_data = false;  ///< of AAᴴ + D²I, since A has fewer rows than columns; else of AᴴA + D²I
  bool by_qr = false;    ///< by QR of [A; D·I]; else by Cholesky of the matrix above
  double damp = 0;       ///< D
  /// The number that was added to D² where rounding made the matrix indefinite, in the units of ‖A‖²; else 0.
  double shift = 0;
  double norm = 0;  ///< the length of A's longest column, or row: a lower bound of ‖A‖
  /// The condition number of [A; D·I] by the singular values that count, or an estimate of ‖R‖₁‖R⁻¹‖₁.
  double condition = 0;
  double truncated = 0;  ///< the largest singular value that counts as 0: with by_qr rounding of A
  Index rank = 0;        ///< the singular values that count: min(m, n), unless some are 0 but for rounding
};

/// A triangular matrix R with RᴴR = AᴴA + D²I where A has at least as many rows as columns, else RᴴR = AAᴴ +
/// D²I; or, as a SpectralFactor, singular values and vectors with the same product. As an operator it is
/// (RᴴR)⁻¹: from A's domain, or A's range, to itself. Every rank holds all of R, of min(m, n)² elements of T,
/// and multiplies by R⁻¹ and R⁻ᴴ for its share of the columns, whatever their layout. It does not refer to A.
/// Reasons: docs/decisions/0065-factors.md.
template <Scalar T>
class GRIDLOPS_EXPORT Factor : public LinearOperator<T> {
 public:
  const FactorFacts& facts() const { return facts_; }

 protected:
  Factor(const Space& space, const FactorFacts& facts) : LinearOperator<T>(space, space), facts_(facts) {}

 private:
  const FactorFacts facts_;
};

/// Computes a factor (collective over the grid; without elements on idle ranks).
///
/// It is the Cholesky factor of AᴴA + D²I, or of AAᴴ + D²I. The ranks sum AᴴA from the rows of A, if A is a
/// matrix that never moves: made by matrix_mult() with block or stationary_a, by stream_matrix() or
/// compress(). They sum AAᴴ from its columns, if matrix_mult() made it. Each block is read once, and sums are
/// in double precision for every T. Of other operators products with min(m, n) unit vectors are taken in both
/// directions, in T. The factor is computed in double precision, and rounded to T.
///
/// This squares the condition number κ. Let n be min(m, n). Where nεκ² exceeds 0.1, with the ε of the sums,
/// or nεκ exceeds 1, with the ε of T, the rows or columns of A are read again, and R comes from QR of
/// [A; D·I] or [Aᴴ; D·I]. If its columns depend on each other but for rounding, singular values of R that are
/// larger than nε times the largest take its place, and the operator is the pseudoinverse of what they make.
/// For [Aᴴ; D·I] these bounds are the smaller of 10nε and (ε²/100)^⅓, since rounding of y has more weight in
/// x = Aᴴy.
///
/// Where there are no rows to read, an AᴴA + D²I that is positive definite beyond rounding is made by adding
/// as much to D² as that takes (Fukaya, Kannan, Nakatsukasa, Yamamoto, Yanagisawa: Shifted Cholesky QR for
/// computing the QR factorization of ill-conditioned matrices, SIAM J. Sci. Comput. 42, 2020); the factor is
/// then a preconditioner. Of AAᴴ + D²I, without columns to read, singular values take the place of R, those
/// larger than nε times the largest: singular values of A below √(nε)‖A‖, 10⁻⁷‖A‖ or so, and in single
/// precision 10⁻³‖A‖ or so, count as 0.
///
///   const auto R = factor(*A, damp);
///   solve(Solver::direct, *A, B, X, {.damp = damp}, {.factor = R.get()});  // for any right-hand sides
///
/// Throws UsageError, on all ranks, if A is not in host memory or D is not a number ≥ 0; InputError if A has
/// elements that are not finite; OutOfMemory if a rank lacks memory. factor_bytes() predicts what it takes,
/// but for singular values, which take as much as five more of R.
template <Scalar T>
GRIDLOPS_EXPORT std::shared_ptr<const Factor<T>> factor(const LinearOperator<T>& A, double damp = 0);

/// The bytes of memory that a factor takes on a rank, at most.
struct FactorBytes {
  Index while_made = 0;     ///< beside the scratch memory of A's products
  Index kept = 0;           ///< R
  Index while_applied = 0;  ///< scratch memory
};
/// Returns those of a rows × cols matrix on this number of ranks, for nrhs right-hand sides. Not collective.
GRIDLOPS_EXPORT FactorBytes factor_bytes(Index rows, Index cols, ScalarType type, Index nrhs, int ranks);

}  // namespace gridlops
