// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/matrix/normal_product.hpp"
#include "ops/matrix/stationary_product.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryA final : public StationaryMatrix<T> {
 public:
  StationaryA(DistMatrix<T> A, const MatrixMultOptions& options)
      : StationaryMatrix<T>(Algorithm::stationary_a, range_nested(A), domain_nested(A), std::move(A),
                            options),
        normal_product_(A_.backend(), reduction_order(options)) {
    if (A_.grid().is_member())
      product_ = std::make_unique<StationaryProduct<T>>(A_.grid(), reduction_order(options));
  }

  bool has_one_pass() const override { return A_.is_packed(); }

 private:
  using StationaryMatrix<T>::A_;

  void do_connect(Op) const override { product_->connect(); }
  void do_reserve(Op op, const Partition& columns) const override {
    A_.reserve(op);
    product_->reserve(op, block_of_models(*this), block_of_data(*this),
                      this->domain().local_columns(columns));
  }
  void do_apply(T alpha, const ConstDistMatrix<T>& X, T beta, DistMatrix<T>& Y) const override {
    product_->multiply(Op::none, block_of_models(*this), block_of_data(*this), X.local(), beta, Y.local(),
                       A_.product(Op::none, alpha));
  }
  void do_apply_adjoint(T alpha, const ConstDistMatrix<T>& Y, T beta, DistMatrix<T>& X) const override {
    product_->multiply(Op::adjoint, block_of_models(*this), block_of_data(*this), Y.local(), beta, X.local(),
                       A_.product(Op::adjoint, alpha));
  }

  void do_reserve_normal_product(const Partition& columns) const override {
    const Index cols = this->domain().local_columns(columns);
    A_.reserve_once(cols);
    normal_product_.reserve(block_of_models(*this), block_of_data(*this), cols);
  }
  void do_normal_product(const ConstDistMatrix<T>& P, const ConstDistMatrix<T>& R, DistMatrix<T>& Q,
                         DistMatrix<T>& U, DistMatrix<T>& V) const override {
    normal_product_.run(A_, block_of_models(*this), block_of_data(*this), P.local(), R.local(), Q.local(),
                        U.local(), V.local());
  }

  mutable NormalProduct<T> normal_product_;
  std::unique_ptr<StationaryProduct<T>> product_;
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<StationaryA<T>>(std::move(A), options);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_stationary_a(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
