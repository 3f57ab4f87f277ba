// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "gridlops/ops/linear_operator.hpp"

namespace gridlops::testing {

/// An operator that counts how often it reads A: in each product, and once in a normal product.
template <Scalar T>
class CountedReads final : public LinearOperator<T> {
 public:
  explicit CountedReads(OperatorPtr<T> A) : LinearOperator<T>(A->range(), A->domain()), A_(std::move(A)) {}

  bool has_one_pass() const override { return true; }
  Index reads() const { return reads_; }

 private:
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    ++reads_;
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    ++reads_;
    A_->apply_adjoint(alpha, Y, beta, X);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    ++reads_;
    A_->normal_product(P, R, Q, U, V);
  }

  OperatorPtr<T> A_;
  mutable Index reads_ = 0;
};

}  // namespace gridlops::testing
