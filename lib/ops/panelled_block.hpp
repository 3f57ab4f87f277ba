// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_mult.hpp"
#include "local/panel_matrix.hpp"
#include "ops/block_exchange.hpp"
#include "ops/local_product.hpp"

namespace gridlops {

/// A rank's block of A where A never moves, in one of two forms: as it was given, or, once the normal product
/// is used, in panels.
template <Scalar T>
class PanelledBlock {
 public:
  PanelledBlock(DistMatrix<T> A, const MatrixMultOptions& options);

  /// For the operator's other products, too.
  BlockExchange<T>& exchange() { return exchange_; }

  /// Y ← α op(A) X + β Y, on this rank.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

  /// See OnePass.
  void prepare();
  void pass_once(const CutBlock& models, const CutBlock& data, const DistMatrix<T>& P, const DistMatrix<T>& R,
                 DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V);

 private:
  /// This rank's Q ← A P, summed over the grid row, and its part of W ← Aᴴ [R, Q].
  void multiply_once(MatrixView<const T> P, MatrixView<const T> R, const CutBlock& data, MatrixView<T> Q,
                     MatrixView<T> W);
  std::vector<Range> chunks() const;

  MatrixView<const T> block() const { return A_.local(); }
  const std::shared_ptr<Backend>& backend() const { return A_.grid()->backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  DistMatrix<T> A_;
  PanelMatrix<T> panels_;
  LocalProduct<T> product_;
  BlockExchange<T> exchange_;
  Buffer<T> models_, data_, product_of_row_, travelling_, partial_, both_;
};

}  // namespace gridlops
