// SPDX-License-Identifier: BSD-3-Clause
#include <memory>
#include <utility>

#include "base/instantiate.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/stationary/high_plane.hpp"
#include "ops/stationary/stationary_operator.hpp"

namespace gridlops {

namespace {

template <Scalar T>
class StationaryA final : public StationaryOperator<T, MatrixOperator<T>> {
 public:
  StationaryA(const std::shared_ptr<MatrixBlock<T>>& A, ReductionOrder order)
      : StationaryOperator<T, MatrixOperator<T>>(A->matrix(), A, A->facts(),
                                                 own_products<T>(A->grid(), order), A) {}

  OperatorPtr<T> high_plane() const override {
    const std::shared_ptr<MatrixBlock<T>>& A = this->matrix_block();
    return std::make_shared<StationaryOperator<T, HighPlaneOperator<T>>>(
        A->matrix(), std::make_shared<HighPlane<T>>(A), this->block_facts(), this->products(), A);
  }
};

}  // namespace

template <Scalar T>
OperatorPtr<T> make_stationary_a(DistMatrix<T> A, const MatrixMultOptions& options) {
  return std::make_shared<StationaryA<T>>(std::make_shared<MatrixBlock<T>>(std::move(A), options),
                                          reduction_order(options));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> make_stationary_a(DistMatrix<T>, const MatrixMultOptions&);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
