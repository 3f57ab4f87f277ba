// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "ops/stationary/matrix_block.hpp"

namespace gridlops {

/// A block in planes, of which products read the high one.
template <Scalar T>
class HighPlane final : public LocalBlock<T> {
 public:
  explicit HighPlane(std::shared_ptr<MatrixBlock<T>> A) : A_(std::move(A)) {}

  Index rows() const override { return A_->rows(); }
  Index cols() const override { return A_->cols(); }
  void reserve(ProductKind kind, Index columns) override { A_->reserve(kind, columns); }
  void multiply(const ProcessGrid&, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    A_->multiply(Planes::high, op, alpha, X, beta, Y);
  }
  void multiply_once(const ProcessGrid&, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                     MatrixView<T> W, const Completion& completed) override {
    A_->multiply_once(Planes::high, P, R, Q, W, completed);
  }
  void reserve_visit() override { A_->reserve(ProductKind::adjoint, 0); }
  void visit_rows(const ProcessGrid&, Op op, const typename LocalBlock<T>::UseRows& use) override {
    A_->visit_rows(Planes::high, op, use);
  }
  void add_kept_bytes(KeptBytes& kept) const override { A_->add_kept_bytes(kept); }

 private:
  std::shared_ptr<MatrixBlock<T>> A_;
};

/// The operator of such blocks. Changes are announced of the matrix, and seen here, too.
template <Scalar T>
class HighPlaneOperator : public LinearOperator<T>, public SeesChanges {
 public:
  void require_unchanged() const final { A_->require_unchanged(); }

 protected:
  HighPlaneOperator(Space range, Space domain, std::shared_ptr<MatrixBlock<T>> A)
      : LinearOperator<T>(std::move(range), std::move(domain)), A_(std::move(A)) {}

 private:
  std::shared_ptr<MatrixBlock<T>> A_;
};

}  // namespace gridlops
