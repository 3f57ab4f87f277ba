// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ops/block_exchange.hpp"
#include "ops/stored_block.hpp"

namespace gridlops {

/// What the operators have in common that pass over A once: a rank's block of A, and messages.
template <Scalar T>
class OnePassBlock {
 public:
  OnePassBlock(DistMatrix<T> A, const MatrixMultOptions& options);

  StoredBlock<T>& block() { return block_; }

  /// Takes the memory of pass_once() for so many columns.
  void reserve(const CutBlock& models, const CutBlock& data, Index count);
  /// See OnePass.
  void pass_once(const CutBlock& models, const CutBlock& data, const DistMatrix<T>& P, const DistMatrix<T>& R,
                 DistMatrix<T>& Q, DistMatrix<T>& U, DistMatrix<T>& V);

 private:
  /// This rank's Q ← A P, summed over the grid row, and its part of W ← Aᴴ [R, Q].
  void multiply_once(MatrixView<const T> P, MatrixView<const T> R, const CutBlock& data, MatrixView<T> Q,
                     MatrixView<T> W);
  std::vector<Range> chunks() const;

  const std::shared_ptr<Backend>& backend() const { return block_.backend(); }
  const Kernels<T>& kernels() const { return backend()->template kernels<T>(); }

  StoredBlock<T> block_;
  MessageExchange<T> exchange_;
  Buffer<T> models_, data_, product_of_row_, travelling_, partial_, both_;
};

}  // namespace gridlops
