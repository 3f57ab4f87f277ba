// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/lone_error.hpp"
#include "comm/failure/failure.hpp"
#include "comm/scratch.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "local/conjugate_transpose.hpp"
#include "local/products/one_pass.hpp"
#include "ops/panels/panels.hpp"

namespace gridlops {

/// Facts about the blocks of a matrix that every rank knows. Idle ranks have no block to ask.
struct BlockFacts {
  bool reads_once = false;      ///< multiply_once() reads a block from memory, or from a disk, once
  bool joins_products = false;  ///< normal products are made by multiply_once(); else they are three products
  bool may_fail_alone = false;  ///< products may throw on one rank, as when its disk fails
  bool has_columns = false;     ///< visit_rows() visits rows of Aᴴ, too
  Index sum_rows = 0;           ///< the rows of Q that multiply_once() completes together; 0: all

  /// Of blocks that are read once. widest: the columns of the widest block of all.
  static BlockFacts of_one_pass(Index widest, Index element_bytes) {
    return {.reads_once = true, .joins_products = true, .sum_rows = one_pass_chunk(widest, element_bytes)};
  }
};

/// A rank's block of a matrix that never moves, however it is stored. Its products are those of this rank
/// alone: nothing here is collective, and what throws, throws on this rank alone.
/// Reasons: docs/decisions/0064-blocks.md.
template <Scalar T>
class LocalBlock {
 public:
  LocalBlock() = default;
  LocalBlock(const LocalBlock&) = delete;
  LocalBlock& operator=(const LocalBlock&) = delete;
  virtual ~LocalBlock() = default;

  virtual Index rows() const = 0;
  virtual Index cols() const = 0;

  /// Takes the memory for products of this kind with this many columns. Throws OutOfMemory.
  virtual void reserve(ProductKind /*kind*/, Index /*columns*/) {}
  /// The bytes of the grid's scratch memory that a product with this many columns uses.
  virtual Index scratch_bytes(Index /*columns*/) const { return 0; }

  /// Y ← α op(A) X + β Y. With β = 0 the old Y is not read. If it throws, Y is meaningless.
  virtual void multiply(const ProcessGrid& grid, Op op, T alpha, MatrixView<const T> X, T beta,
                        MatrixView<T> Y) = 0;
  /// Q ← A P, summed over ranks by `completed`, and W ← Aᴴ [R, Q]. `completed` may be null; the caller goes
  /// on to call it if this throws, and where A has no rows or columns. If it throws, Q and W are meaningless.
  /// The default makes three products.
  virtual void multiply_once(const ProcessGrid& grid, MatrixView<const T> P, MatrixView<const T> R,
                             MatrixView<T> Q, MatrixView<T> W, const Completion& completed) {
    multiply(grid, Op::none, T(1), P, T(0), Q);
    complete(Q.rows, completed);
    multiply(grid, Op::adjoint, T(1), R, T(0), W.col_block({0, R.cols}));
    multiply(grid, Op::adjoint, T(1), Q, T(0), W.col_block({R.cols, Q.cols}));
  }

  /// Receives some rows of op(A), in column-major order. The elements are valid until it returns.
  using UseRows = std::function<void(Range rows, MatrixView<const T> elements)>;
  /// Calls use() for all rows of op(A) in order, a few at a time, in host memory. op is none, or adjoint
  /// where BlockFacts say has_columns. Blocks that have their elements read them once. The default, for rows
  /// of A, multiplies with unit vectors, rows_by_products() at a time, in the scratch memory of such
  /// products.
  virtual void visit_rows(const ProcessGrid& grid, Op op, const UseRows& use);
  /// Takes the memory that visit_rows() needs for products. Throws OutOfMemory.
  virtual void reserve_visit() { reserve(ProductKind::adjoint, rows_by_products()); }
  /// The rows that the default visits at a time: at most 64, and as many as fit into 64 MiB.
  Index rows_by_products() const {
    constexpr Index most = 64, bytes = Index{64} << 20;
    return std::clamp(bytes / ((rows() + 2 * cols() + 1) * Index{sizeof(T)}), Index{1}, most);
  }

  /// Adds the bytes that the block keeps, unless they are the caller's.
  virtual void add_kept_bytes(KeptBytes& kept) const = 0;
  /// The bytes that products with this many columns take beside them and the scratch memory. Blocks that
  /// share products take them once.
  virtual Index workspace_bytes(Index /*columns*/) const { return 0; }
  /// The bytes of the block that this rank has read from a disk, and the seconds that products have waited
  /// for them.
  virtual Index bytes_read() const { return 0; }
  virtual double seconds_waited() const { return 0; }

 protected:
  /// Returns once all rows are complete.
  static void complete(Index rows, const Completion& completed) {
    for (Index done = 0; completed && done < rows;) done = completed(rows);
  }
};

/// The columns of a block in memory whose elements visit_rows() of Aᴴ copies at a time: whole tiles, as many
/// as make a product fast, and not more than 64 MiB if these are several.
constexpr Index visited_columns(Index rows, Index element_bytes) {
  constexpr Index tile = 64, most = 4, bytes = Index{64} << 20;
  return std::clamp(bytes / (rows * tile * element_bytes + 1), Index{1}, most) * tile;
}

template <Scalar T>
void LocalBlock<T>::visit_rows(const ProcessGrid& grid, Op op, const UseRows& use) {
  require_here<UsageError>(op == Op::none, "a block of ", rows(), " x ", cols(),
                           " that has no columns cannot visit the rows of its adjoint");
  const Index together = std::min(rows_by_products(), rows());
  Buffer<T> unit(grid.backend(), rows() * together), columns(grid.backend(), cols() * together),
      elements(grid.backend(), cols() * together);
  for (Index first = 0; first < rows(); first += together) {
    const Range range{first, std::min(together, rows() - first)};
    const MatrixView<T> E = unit.matrix(rows(), range.size), W = columns.matrix(cols(), range.size),
                        slab = elements.matrix(range.size, cols());
    std::fill_n(E.data, E.size(), T(0));
    for (Index i = 0; i < range.size; ++i) E(first + i, i) = T(1);
    multiply(grid, Op::adjoint, T(1), E, T(0), W);
    conjugate_transpose<T>(W, slab);
    use(range, slab);
  }
}

/// An operator whose matrix never moves: each rank has a block of it.
template <Scalar T>
class MatrixInBlocks {
 public:
  /// Null on idle ranks, unless they have one.
  LocalBlock<T>* local_block() const { return block_.get(); }
  const Layout& layout_of_matrix() const { return layout_; }
  const BlockFacts& block_facts() const { return facts_; }

 protected:
  MatrixInBlocks(Layout layout, std::shared_ptr<LocalBlock<T>> block, const BlockFacts& facts)
      : layout_(std::move(layout)), block_(std::move(block)), facts_(facts) {}
  ~MatrixInBlocks() = default;

 private:
  Layout layout_;
  std::shared_ptr<LocalBlock<T>> block_;
  BlockFacts facts_;
};

/// The matrix of an operator, or of one that watches it; null if it has none that never moves.
template <Scalar T>
const MatrixInBlocks<T>* matrix_in_blocks(const LinearOperator<T>& A) {
  return dynamic_cast<const MatrixInBlocks<T>*>(&A.watched());
}

/// Calls visit_rows() of this rank's block, after taking the scratch memory that it needs, and after
/// allocate(), which takes the memory of use() (collective over the grid; one agreement). is_wanted: on this
/// rank. Throws, on all ranks, if a rank lacks memory. What visiting throws on this rank is kept in
/// `failures`.
template <Scalar T, class Allocate>
void visit_rows(const MatrixInBlocks<T>& A, Op op, const ProcessGrid& grid, bool is_wanted,
                FailureScope& failures, const typename LocalBlock<T>::UseRows& use, Allocate&& allocate) {
  LocalBlock<T>& block = *A.local_block();
  ScratchStack& scratch = detail::scratch_of(grid);
  try {
    attempt(grid.comm(), [&] {
      if (is_wanted) {
        scratch.reserve(block.scratch_bytes(block.rows_by_products()));
        block.reserve_visit();
      }
      allocate();
    });
  } catch (...) {
    scratch.note_loss();
    scratch.release();
    throw;
  }
  if (!is_wanted) return;
  failures.run([&] {
    const ScratchStack::Working working(scratch);
    block.visit_rows(grid, op, use);
  });
}

}  // namespace gridlops
