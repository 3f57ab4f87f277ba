// SPDX-License-Identifier: BSD-3-Clause
#include "ops/matrix/high_plane.hpp"

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
  HighPlane(OperatorPtr<T> A, const StationaryMatrix<T>& stored)
      : LibraryOperator<T>(A->range(), A->domain()), A_(std::move(A)), stored_(stored) {}

  bool has_one_pass() const override { return A_->has_one_pass(); }
  bool is_of(const LinearOperator<T>& A) const { return A_.get() == &A; }

 private:
  class Reading {
   public:
    explicit Reading(const StationaryMatrix<T>& stored) : stored_(stored) { stored_.read(Planes::high); }
    ~Reading() { stored_.read(Planes::both); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    const StationaryMatrix<T>& stored_;
  };

  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    const Reading reading(stored_);
    A_->apply(alpha, X, beta, Y);
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    const Reading reading(stored_);
    A_->apply_adjoint(alpha, Y, beta, X);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    const Reading reading(stored_);
    A_->normal_product(P, R, Q, U, V);
  }
  Index do_scratch_bytes(ProductKind kind, const Partition& columns) const override {
    return A_->scratch_bytes(kind, columns);
  }
  Index do_kept_bytes(const Partition& columns) const override { return A_->kept_bytes(columns); }

  OperatorPtr<T> A_;
  const StationaryMatrix<T>& stored_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> high_plane(const OperatorPtr<T>& A) {
  const auto* const stored = dynamic_cast<const StationaryMatrix<T>*>(A.get());
  require<UsageError>(stored != nullptr && stored->is_in_planes(), "an operator of ", A->rows(), " x ",
                      A->cols(),
                      " has no high plane: matrix_mult() makes one that has, with Storage::planes");
  return std::make_shared<HighPlane<T>>(A, *stored);
}

template <Scalar T>
bool is_high_plane(const LinearOperator<T>& op, const LinearOperator<T>& A) {
  const auto* const plane = dynamic_cast<const HighPlane<T>*>(&op);
  return plane != nullptr && plane->is_of(A);
}

#define GRIDLOPS_INSTANTIATE(T)                              \
  template OperatorPtr<T> high_plane(const OperatorPtr<T>&); \
  template bool is_high_plane(const LinearOperator<T>&, const LinearOperator<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
