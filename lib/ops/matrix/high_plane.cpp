// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "ops/matrix/matrix_block.hpp"

namespace gridlops {

namespace {

/// A block in planes, of which products read the high one.
template <Scalar T>
class HighPlane final : public LocalBlock<T> {
 public:
  explicit HighPlane(std::shared_ptr<MatrixBlock<T>> A) : A_(std::move(A)) {}

  void reserve(ProductKind kind, Index columns) override { A_->reserve(kind, columns); }
  void multiply(const ProcessGrid&, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    A_->multiply(Planes::high, op, alpha, X, beta, Y);
  }
  void multiply_once(const ProcessGrid&, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                     MatrixView<T> W, const Completion& completed) override {
    A_->multiply_once(Planes::high, P, R, Q, W, completed);
  }
  void add_kept_bytes(KeptBytes& kept) const override { A_->add_kept_bytes(kept); }

 private:
  std::shared_ptr<MatrixBlock<T>> A_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> high_plane(const OperatorPtr<T>& A) {
  const auto* const stored = dynamic_cast<const MatrixOperator<T>*>(A.get());
  require<UsageError>(stored != nullptr && stored->matrix_block()->is_in_planes(), "an operator of ",
                      A->rows(), " x ", A->cols(),
                      " has no high plane: matrix_mult() makes one that has, with Storage::planes");
  return stored->with_block(std::make_shared<HighPlane<T>>(stored->matrix_block()));
}

#define GRIDLOPS_INSTANTIATE(T) template OperatorPtr<T> high_plane(const OperatorPtr<T>&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
