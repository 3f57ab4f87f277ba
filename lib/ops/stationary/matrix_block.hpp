// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "local/products/packed_matrix.hpp"
#include "ops/operator/stored_matrix.hpp"
#include "ops/stationary/local_block.hpp"

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

/// Whether blocks in this memory are packed, whole or in planes, from their first product on.
inline bool stays_packed(const MatrixMultOptions& options, const Backend& backend) {
  return !row_of(options.storage).is_as_given && backend.memory_space() == MemorySpace::host;
}

/// Throws UsageError, on all ranks, if the storage is not for matrices of this type, or not for those in this
/// memory.
void require_storage_possible(Storage storage, ScalarType type, MemorySpace memory);

/// A rank's block of a matrix in memory, stored as the options say. Idle ranks have one, too, without
/// elements.
template <Scalar T>
class MatrixBlock final : public LocalBlock<T> {
 public:
  MatrixBlock(DistMatrix<T> A, const MatrixMultOptions& options)
      : A_(std::move(A)),
        product_(backend(), options.column_stable),
        is_packed_(stays_packed(options, *backend())),
        packing_(options.storage == Storage::planes ? Packing::planes : Packing::whole) {}

  /// The matrix. Its block on this rank is null if it is packed and did not belong to the caller.
  const ConstDistMatrix<T>& matrix() const { return A_.matrix(); }
  const ProcessGrid& grid() const { return *matrix().grid(); }
  const std::shared_ptr<Backend>& backend() const { return grid().backend(); }
  BlockFacts facts() const {
    const Index widest = matrix().layout().cols.partition.largest();
    BlockFacts facts =
        is_packed_ ? BlockFacts::of_one_pass(widest, Index{sizeof(T)}) : BlockFacts{.joins_products = true};
    facts.has_columns = true;
    return facts;
  }

  Index rows() const override { return matrix().local().rows; }
  Index cols() const override { return matrix().local().cols; }
  void reserve_visit() override {}
  void visit_rows(const ProcessGrid&, Op op, const typename LocalBlock<T>::UseRows& use) override {
    visit_rows(Planes::both, op, use);
  }

  /// Hash of the elements, independent of how they are stored.
  std::uint64_t hash() const;
  void require_unchanged() const { A_.require_unchanged(); }
  void note_change() { A_.note_change(); }
  /// If the block is packed, packs it anew after the caller has changed it.
  void renew_copies();

  bool is_in_planes() const { return packing_ == Packing::planes; }

  /// Packs the block if necessary. Where there is no room for a packed copy next to the block, it stays in
  /// columns, with a warning of this rank.
  void reserve(ProductKind kind, Index columns) override;
  void multiply(const ProcessGrid&, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) override {
    multiply(Planes::both, op, alpha, X, beta, Y);
  }
  /// Reads a packed A once (see PackedMatrix), and another twice.
  void multiply_once(const ProcessGrid&, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                     MatrixView<T> W, const Completion& completed) override {
    multiply_once(Planes::both, P, R, Q, W, completed);
  }

  // The same from these planes, if the block is in planes.
  void visit_rows(Planes planes, Op op, const typename LocalBlock<T>::UseRows& use);
  void multiply(Planes planes, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y);
  void multiply_once(Planes planes, MatrixView<const T> P, MatrixView<const T> R, MatrixView<T> Q,
                     MatrixView<T> W, const Completion& completed);

  /// A packed block is a copy of the caller's.
  void add_kept_bytes(KeptBytes& kept) const override {
    if (is_packed_ && !lacks_room_) {
      kept.add(this, block_bytes<T>(Storage::packed, rows(), cols()));
    } else if (!A_.is_callers()) {
      kept.add(this, block_bytes<T>(Storage::columns, rows(), cols()));
    }
  }

 private:
  void pack();
  void visit_columns(Planes planes, const typename LocalBlock<T>::UseRows& use);

  GivenMatrix<T> A_;
  BlockProduct<T> product_;
  bool is_packed_;  // the same on all ranks, wherever the room is enough for it
  Packing packing_;
  PackedMatrix<T> packed_;  // empty before the first product, and where A is empty, or stays in columns
  bool lacks_room_ = false;
  Buffer<T> both_;  // [R, Q], where A is not packed
};

/// An operator of a matrix in memory that never moves.
template <Scalar T>
class MatrixOperator : public LinearOperator<T>, public StoredMatrix {
 public:
  std::uint64_t hash() const final { return A_->hash(); }
  void require_unchanged() const final { A_->require_unchanged(); }
  void note_change() const final { A_->note_change(); }
  void renew_copies() const final { A_->renew_copies(); }

  const std::shared_ptr<MatrixBlock<T>>& matrix_block() const { return A_; }
  /// The operator of the high plane of a matrix in planes, with the same exchanges and buffers.
  virtual OperatorPtr<T> high_plane() const = 0;

 protected:
  MatrixOperator(Space range, Space domain, std::shared_ptr<MatrixBlock<T>> A)
      : LinearOperator<T>(std::move(range), std::move(domain)), A_(std::move(A)) {}

 private:
  std::shared_ptr<MatrixBlock<T>> A_;
};

}  // namespace gridlops
