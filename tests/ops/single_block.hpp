// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "gridlops/base/error.hpp"
#include "ops/stationary/stationary_operator.hpp"

namespace gridlops::testing {

/// A way to store a matrix that the library does not have: elements of double precision in single precision.
/// Throws in every product while `fails`.
template <Scalar T>
class SingleBlock final : public LocalBlock<T> {
 public:
  SingleBlock(MatrixView<const T> A, std::shared_ptr<const bool> fails)
      : rows_(A.rows), cols_(A.cols), fails_(std::move(fails)) {
    for (Index j = 0; j < A.cols; ++j)
      for (Index i = 0; i < A.rows; ++i) elements_.push_back(static_cast<Single>(A(i, j)));
  }

  Index rows() const override { return rows_; }
  Index cols() const override { return cols_; }
  void multiply(const ProcessGrid&, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    if (*fails_) throw InputError("a block cannot be read");
    for (Index j = 0; j < Y.cols; ++j) {
      for (Index i = 0; i < Y.rows; ++i) {
        T sum = 0;
        for (Index k = 0; k < X.rows; ++k) sum += element(op, i, k) * X(k, j);
        Y(i, j) = alpha * sum + (beta == T(0) ? T(0) : beta * Y(i, j));
      }
    }
  }
  void add_kept_bytes(KeptBytes& kept) const override {
    kept.add(this, std::ssize(elements_) * Index{sizeof(Single)});
  }

 private:
  using Single = std::conditional_t<std::is_same_v<T, double>, float, std::complex<float>>;

  T element(Op op, Index i, Index k) const {
    const T value(op == Op::none ? elements_[at(i + k * rows_)] : elements_[at(k + i * rows_)]);
    return op == Op::none ? value : conjugate(value);
  }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  Index rows_, cols_;
  std::shared_ptr<const bool> fails_;
  std::vector<Single> elements_;
};

template <Scalar T>
using InSingle = StationaryOperator<T, LinearOperator<T>>;

/// The operator of a matrix that is stored so (collective over the grid).
template <Scalar T>
std::shared_ptr<InSingle<T>> in_single(const DistMatrix<T>& A, const std::shared_ptr<const bool>& fails,
                                       bool joins) {
  return std::make_shared<InSingle<T>>(A, std::make_shared<SingleBlock<T>>(A.local(), fails),
                                       BlockFacts{.joins_products = joins, .may_fail_alone = true},
                                       shared_products<T>(*A.grid(), ReductionOrder::by_rank));
}

}  // namespace gridlops::testing
