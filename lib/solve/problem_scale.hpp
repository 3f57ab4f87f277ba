// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "dist/column_powers.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "solve/run/active_columns.hpp"

namespace gridlops {

/// The largest power of two, up or down, that norms of A, D and b may have without scaling. Within this
/// limit, no square of a norm in least squares or conjugate gradients leaves the range of double precision,
/// and no element of A AᴴA b leaves that of T, either at the start or once norms have fallen to ε of their
/// initial values.
template <Scalar T>
inline constexpr int unscaled_powers = sizeof(Real<T>) == 4 ? 20 : 150;

/// Throws UsageError, on all ranks, unless squares of norms stay in range although nothing is scaled
/// (collective over the grid). norms: an estimate of ‖A‖ for each column of B, or 0 if there is none.
template <Scalar T>
void require_range_without_scaling(const char* solver, const std::vector<double>& norms,
                                   const ConstDistMatrix<T>& B);

/// By how much more to change the power of two that multiplies A, given the largest norm of A or D that is
/// seen with the present one: 0 or infinite if it tells only on which side of the range it lies. 0 if A may
/// stay as it is. tries: how often the power was changed before.
template <Scalar T>
int change_of_power(double norm, int power, int tries);

/// The operator of each column: 2^power · A for an even power, or 2^power · diag(w) A with the column's
/// weights w. If the power is not 0, half of it multiplies the operand before the product, and the other half
/// the result, so that no intermediate value leaves the range of T. One product serves all columns: A p is
/// weighted row by row behind it, and r before Aᴴ r.
/// Reasons: docs/decisions/0038-scale.md, docs/decisions/0068-weights.md.
template <Scalar T>
class ScaledOperator {
 public:
  /// A must outlive this. The power is 0 at first.
  explicit ScaledOperator(const LinearOperator<T>& A) : A_(&A) {}

  const LinearOperator<T>& unscaled() const { return *A_; }
  const Space& domain() const { return A_->domain(); }
  const Space& range() const { return A_->range(); }
  Index rows() const { return A_->rows(); }
  Index cols() const { return A_->cols(); }

  /// Takes memory for operands with these columns unless the power is 0 (collective over the grid). All ranks
  /// throw OutOfMemory if one of them does not have enough.
  void set_power(int power, const Partition& columns);

  /// Weighs rows from now on. W has those of a batch, whose columns are now at these places; both must
  /// outlive the products. Takes memory for operands with all its columns, and throws OutOfMemory on this
  /// rank alone.
  void set_weights(const ConstDistMatrix<T>& W, const ActiveColumns& places);

  // These are the operator's.
  void apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const;
  void apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const;
  void normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                      DistMatrix<T>& U, DistMatrix<T>& V) const;

 private:
  DistMatrix<T> scaled(const Space& space, const ConstDistMatrix<T>& X) const;
  /// A matrix in the range for weighted data, with the columns of X.
  DistMatrix<T> weighted_data(const ConstDistMatrix<T>& X) const {
    return range().matrix(X.layout().cols.partition, weighted_);
  }
  /// Y ← α W∘X + β Y, where X may be Y.
  void weigh(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const;

  const LinearOperator<T>* A_;
  const ConstDistMatrix<T>* W_ = nullptr;  // null: all weights are 1
  const ActiveColumns* places_ = nullptr;
  Buffer<T> weighted_;
  int power_ = 0;
  T half_ = 1;  // 2^(power/2)
  Buffer<T> memory_;
};

}  // namespace gridlops
