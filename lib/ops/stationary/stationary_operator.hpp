// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "comm/failure/failure.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/stationary/stationary_products.hpp"

namespace gridlops {

/// A matrix that never moves, as an operator: each rank multiplies by its block, in whichever way it is
/// stored. Interface: the kind of operator that it is for its callers.
template <Scalar T, class Interface>
class StationaryOperator : public Interface, public MatrixInBlocks<T> {
 public:
  /// A: the matrix of the blocks, with its layout. Idle ranks have no products, and need no block.
  template <class... Arguments>
  StationaryOperator(const ConstDistMatrix<T>& A, std::shared_ptr<LocalBlock<T>> block,
                     const BlockFacts& facts, std::shared_ptr<StationaryProducts<T>> products,
                     Arguments&&... arguments)
      : Interface(range_nested(A), domain_nested(A), std::forward<Arguments>(arguments)...),
        MatrixInBlocks<T>(A.layout(), std::move(block), facts),
        products_(std::move(products)) {}

  bool has_one_pass() const final { return this->block_facts().reads_once; }

 protected:
  const std::shared_ptr<StationaryProducts<T>>& products() const { return products_; }

 private:
  bool runs_callers_code() const final { return false; }

  void do_connect(Op) const final { products_->connect(); }
  void do_reserve(Op op, const Partition& columns) const final {
    reserve(op == Op::none ? ProductKind::forward : ProductKind::adjoint, columns);
  }
  void do_reserve_normal_product(const Partition& columns) const final {
    if (!this->block_facts().joins_products) return Interface::do_reserve_normal_product(columns);
    reserve(ProductKind::normal, columns);
  }
  void reserve(ProductKind kind, const Partition& columns) const {
    const Index cols = this->domain().local_columns(columns);
    this->local_block()->reserve(kind, cols);
    products_->reserve(kind, block_of_models(*this), block_of_data(*this), cols);
  }
  Index do_scratch_bytes(ProductKind, const Partition& columns) const final {
    return this->local_block()->scratch_bytes(this->domain().local_columns(columns));
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const final {
    this->local_block()->add_kept_bytes(kept);
    kept.add(products_.get(), this->local_block()->workspace_bytes(columns.total()) +
                                  workspace_bytes(Algorithm::stationary_a, *this, columns.total()));
  }

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const final {
    multiply(Op::none, alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const final {
    multiply(Op::adjoint, alpha, Y, beta, X);
  }
  void multiply(Op op, T alpha, const ConstDistMatrix<T>& in, T beta, DistMatrix<T>& out) const {
    FailureScope failures;
    note_lone_failures(failures);
    products_->multiply(*this->local_block(), *this->domain().grid, op, alpha, block_of_models(*this),
                        block_of_data(*this), in.local(), beta, out.local());
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const final {
    if (!this->block_facts().joins_products) return Interface::do_normal_product(P, R, Q, U, V);
    FailureScope failures;
    note_lone_failures(failures);
    products_->multiply_once(*this->local_block(), *this->domain().grid, this->block_facts(),
                             block_of_models(*this), block_of_data(*this), P.local(), R.local(), Q.local(),
                             U.local(), V.local());
  }

  void note_lone_failures(FailureScope& failures) const {
    if (this->block_facts().may_fail_alone) failures.note_lone_failures();
  }

  std::shared_ptr<StationaryProducts<T>> products_;
};

}  // namespace gridlops
