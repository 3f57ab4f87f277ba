// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "ops/matrix/matrix_block.hpp"
#include "ops/operator/library_operator.hpp"

namespace gridlops {

namespace {

/// Applies A, which reads the high plane meanwhile.
template <Scalar T>
class HighPlane final : public LibraryOperator<T> {
 public:
  HighPlane(OperatorPtr<T> A, MatrixBlock<T>& block)
      : LibraryOperator<T>(A->range(), A->domain()), A_(std::move(A)), block_(block) {}

  bool has_one_pass() const override { return A_->has_one_pass(); }

 private:
  class Reading {
   public:
    explicit Reading(MatrixBlock<T>& block) : block_(block) { block_.read(Planes::high); }
    ~Reading() { block_.read(Planes::both); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    MatrixBlock<T>& block_;
  };

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const Reading reading(block_);
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const Reading reading(block_);
    A_->apply_adjoint(alpha, Y, beta, X);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    const Reading reading(block_);
    A_->normal_product(P, R, Q, U, V);
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return A_->scratch_bytes(kind, columns);
  }
  void do_add_kept_bytes(KeptBytes& kept, const Partition& columns) const override {
    A_->add_kept_bytes(kept, columns);
  }

  OperatorPtr<T> A_;
  MatrixBlock<T>& block_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> high_plane(const OperatorPtr<T>& A) {
  const auto* const stored = dynamic_cast<const MatrixOperator<T>*>(A.get());
  require<UsageError>(stored != nullptr && stored->block().is_in_planes(), "an operator of ", A->rows(),
                      " x ", A->cols(),
                      " has no high plane: matrix_mult() makes one that has, with Storage::planes");
  return std::make_shared<HighPlane<T>>(A, stored->block());
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> high_plane(const OperatorPtr<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
