// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <functional>
#include <memory>

#include "dist/matrix_checks.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/operator/library_operator.hpp"
#include "ops/operator/stored_matrix.hpp"
#include "ops/panels/panel_transfers.hpp"
#include "ops/stationary/matrix_block.hpp"

namespace gridlops {

/// A product with op(A) in steps, with the sources of its operands and the destination of its sums.
template <Scalar T>
struct PanelPlan {
  std::size_t steps = 0, lookahead = 0;     ///< panels begin to travel `lookahead` steps before their use
  std::function<Panel(std::size_t)> panel;  ///< the panel of a step
  std::shared_ptr<PanelSource<T>> A, B;
  std::shared_ptr<PanelSum<T>> C;
  Communicator* family = nullptr;  ///< if not null, the messages for A and B of one step start as one group
};

/// C ← α op(A) B + β C. A, B, C: this rank's blocks. Implemented in summa.cpp.
template <Scalar T>
void multiply_in_panels(const PanelPlan<T>& by, const BlockProduct<T>& product, Op op, T alpha,
                        MatrixView<const T> A, MatrixView<const T> B, T beta, MatrixView<T> C);

/// Multiplies op(A) with B in panels. summa and stationary_b are this operator with their own plans.
template <Scalar T>
class PanelMult final : public LibraryOperator<T>, public StoredMatrix {
 public:
  /// Idle ranks have no plans.
  PanelMult(Algorithm algorithm, DistMatrix<T> A, const MatrixMultOptions& options, PanelPlan<T> for_A = {},
            PanelPlan<T> for_adjoint = {});

  std::uint64_t hash() const override { return hash_of_block<T>(A_.matrix()); }
  void require_unchanged() const override { A_.require_unchanged(); }
  void note_change() const override { A_.note_change(); }
  void renew_copies() const override;

 private:
  void do_connect(Op op) const override;
  void do_reserve(Op op, const Partition& columns) const override;
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    kept.add(this, (A_.is_callers() ? 0 : A_.matrix().local().size() * Index{sizeof(T)}) +
                       workspace_bytes(algorithm_, *this, columns.total(), panel_));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    multiply(Op::none, alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    multiply(Op::adjoint, alpha, Y.local(), beta, X.local());
  }
  void multiply(Op op, T alpha, MatrixView<const T> B, T beta, MatrixView<T> C) const {
    multiply_in_panels(plan(op), product_, op, alpha, A_.matrix().local(), B, beta, C);
  }
  const PanelPlan<T>& plan(Op op) const { return plans_[op == Op::none ? 0 : 1]; }

  mutable GivenMatrix<T> A_;
  BlockProduct<T> product_;
  std::array<PanelPlan<T>, 2> plans_;
  Algorithm algorithm_;
  Index panel_;
};

}  // namespace gridlops
