// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/matrix_mult.hpp"
#include "local/panel_matrix.hpp"
#include "ops/local_product.hpp"

namespace gridlops {

/// A rank's block of A where A never moves, as it was given or in panels, and products with it.
template <Scalar T>
class StoredBlock {
 public:
  StoredBlock(DistMatrix<T> A, const MatrixMultOptions& options)
      : A_(std::move(A)),
        product_(A_.grid()->backend(), options.column_stable),
        wants_panels_(options.storage == Storage::panels) {}

  /// Takes the memory for products with op(A).
  void reserve(Op op);
  /// Y ← α op(A) X + β Y, on this rank.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y);

  /// From now on in panels, on hosts; what it was given is given up.
  void store_in_panels();
  /// Empty unless stored so.
  const PanelMatrix<T>& panels() const { return panels_; }

  const Layout& layout() const { return A_.layout(); }
  const ProcessGrid& grid() const { return *A_.grid(); }
  const std::shared_ptr<Backend>& backend() const { return grid().backend(); }
  Index rows() const { return A_.local().rows; }

 private:
  DistMatrix<T> A_;
  PanelMatrix<T> panels_;
  LocalProduct<T> product_;
  bool wants_panels_;
};

}  // namespace gridlops
