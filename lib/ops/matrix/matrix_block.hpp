// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "local/products/packed_matrix.hpp"
#include "ops/operator/library_operator.hpp"
#include "ops/operator/stored_matrix.hpp"

namespace gridlops {

/// Multiplies local blocks: Y ← α op(A) X + β Y, with few or many columns in X.
///
/// With column_stable, the host multiplies by few_columns_gemm(). A GPU's BLAS chooses its algorithm by
/// shapes, leading dimensions and alignment, so that it gets all groups of columns in the same memory, the
/// last one padded with zeros.
template <Scalar T>
class BlockProduct {
 public:
  BlockProduct(std::shared_ptr<Backend> backend, bool column_stable)
      : backend_(std::move(backend)), column_stable_(column_stable) {}

  bool column_stable() const { return column_stable_; }

  /// Takes the memory for products in which X and Y have at most this many rows.
  void reserve(Index rows_of_X, Index rows_of_Y) const;

  void multiply(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta, MatrixView<T> Y) const;

 private:
  bool pads() const { return column_stable_ && backend_->memory_space() != MemorySpace::host; }

  /// A multiple of the number of columns of every micro-kernel known in BLAS libraries.
  static constexpr Index group = 8;

  std::shared_ptr<Backend> backend_;
  bool column_stable_;
  mutable Buffer<T> padded_X_, padded_Y_;
};

/// The bytes that this rank keeps for products of a matrix with so many columns: its block, if it is not the
/// caller's, and buffers.
template <Scalar T>
Index bytes_kept_for(Algorithm algorithm, const ConstDistMatrix<T>& A, bool block_is_callers, Index columns,
                     bool one_pass, Index panel = 0) {
  const ProcessGrid& grid = *A.grid();
  return (block_is_callers ? 0 : A.local().size() * Index{sizeof(T)}) +
         product_workspace_bytes(algorithm, {A.rows(), A.cols(), columns, scalar_type_of<T>}, grid.shape(),
                                 grid.my_row(), grid.my_col(), one_pass, panel);
}

/// Whether blocks in this memory are packed, whole or in planes, from their first product on.
inline bool stays_packed(const MatrixMultOptions& options, const Backend& backend) {
  return options.storage != Storage::columns && backend.memory_space() == MemorySpace::host;
}

/// Throws UsageError, on all ranks, if planes or a disk are asked for in vain.
template <Scalar T>
void require_storage_possible(const MatrixMultOptions& options, const Backend& backend) {
  require<UsageError>(options.storage != Storage::disk,
                      "A would be in memory; stream_matrix() makes an operator of one on disks");
  if (options.storage != Storage::planes) return;
  require<UsageError>(std::is_same_v<Real<T>, double>, "a matrix of ", name_of(scalar_type_of<T>),
                      " has no planes, which are the halves of 64-bit numbers; take packed, or f64 or c128");
  require<UsageError>(backend.memory_space() == MemorySpace::host,
                      "planes are for matrices in host memory, and this one is on a GPU; take packed");
}

/// A rank's block of a matrix A that never moves, stored as the options say.
template <Scalar T>
class MatrixBlock {
 public:
  MatrixBlock(DistMatrix<T> A, const MatrixMultOptions& options)
      : A_(std::move(A)),
        product_(backend(), options.column_stable),
        is_packed_(stays_packed(options, *backend())),
        packing_(options.storage == Storage::planes ? Packing::planes : Packing::whole) {}

  const Layout& layout() const { return A_.matrix().layout(); }
  const ProcessGrid& grid() const { return *A_.matrix().grid(); }
  const std::shared_ptr<Backend>& backend() const { return grid().backend(); }
  /// Hash of the elements, independent of how they are stored.
  std::uint64_t hash() const;
  /// The matrix. Its block on this rank is null if it is packed and did not belong to the caller.
  GivenMatrix<T>& given() { return A_; }
  /// If the block is packed, packs it anew after the caller has changed it.
  void renew_copies();
  /// See bytes_kept_for(). A packed block is a copy of the caller's.
  Index kept_bytes(Algorithm algorithm, Index columns) const {
    return bytes_kept_for(algorithm, A_.matrix(), A_.is_callers() && !is_packed_, columns, is_packed_);
  }
  /// See stays_packed(); the same on all ranks, wherever the room is enough for it.
  bool is_packed() const { return is_packed_; }
  bool is_in_planes() const { return packing_ == Packing::planes; }
  /// What products from now on read of a block in planes.
  void read(Planes planes) { planes_ = planes; }

  /// Packs the block if necessary, and takes the memory for products with op(A). Where there is no room for a
  /// packed copy next to the block, the block stays in columns, with a warning of this rank.
  void reserve(Op op);
  /// Y ← α op(A) X + β Y, on this rank.
  void multiply(Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y);
  /// multiply() as a function of X, β and Y.
  auto product(Op op, T alpha) {
    return [this, op, alpha](MatrixView<const T> X, T beta, MatrixView<T> Y) {
      multiply(op, alpha, X, beta, Y);
    };
  }
  /// Takes the memory for multiply_once() with this many columns in P.
  void reserve_once(Index cols);
  /// Q ← A P, summed over ranks by `completed`, and W ← Aᴴ [R, Q]. Reads a packed A once (see PackedMatrix),
  /// and another twice.
  void multiply_once(MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q, MatrixView<T> W,
                     const Completion& completed);

 private:
  void pack();

  GivenMatrix<T> A_;
  BlockProduct<T> product_;
  bool is_packed_;
  Packing packing_;
  Planes planes_ = Planes::both;
  PackedMatrix<T> packed_;  // empty before the first product, and where A is empty, or stays in columns
  bool lacks_room_ = false;
  Buffer<T> both_;  // [R, Q], where A is not packed
};

/// An operator whose A never moves.
template <Scalar T>
class StationaryMatrix : public LibraryOperator<T>, public StoredMatrix {
 public:
  std::uint64_t hash() const override { return A_.hash(); }
  void require_unchanged() const override { A_.given().require_unchanged(); }
  void note_change() const override { A_.given().note_change(); }
  void renew_copies() const override { A_.renew_copies(); }

  bool is_in_planes() const { return A_.is_in_planes(); }
  void read(Planes planes) const { A_.read(planes); }

 protected:
  StationaryMatrix(Algorithm algorithm, Space range, Space domain, DistMatrix<T>&& A,
                   const MatrixMultOptions& options)
      : LibraryOperator<T>(std::move(range), std::move(domain)),
        A_(std::move(A), options),
        algorithm_(algorithm) {}

  mutable MatrixBlock<T> A_;

 private:
  Index do_kept_bytes(const Partition& columns) const override {
    return A_.kept_bytes(algorithm_, columns.total());
  }

  Algorithm algorithm_;
};

}  // namespace gridlops
