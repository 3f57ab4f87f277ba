// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ops/scratch.hpp"
#include "solve/column_sums.hpp"
#include "solve/small_dense.hpp"
#include "solve/state_archive.hpp"

namespace gridlops {

/// Rows of a tall block that are multiplied in place at a time.
inline constexpr Index block_panel_rows = 1024;

/// A partition of uncut columns.
inline Partition uncut_columns(Index count) { return Partition::with_sizes({count}); }

/// A small matrix in the memory of a backend, as a factor of tall products.
template <Scalar T>
class SmallFactor {
 public:
  void reserve(const std::shared_ptr<Backend>& backend, Index elements) {
    memory_.reserve(backend, elements);
  }
  /// The one given out before becomes invalid.
  MatrixView<const T> upload(const std::shared_ptr<Backend>& backend,
                             const SmallMatrix<Accumulator<T>>& small);

 private:
  std::vector<T> host_;
  Buffer<T> memory_;
};

/// An orthonormal block of vectors, and the candidate for the next one, which is nearly orthogonal to it. The
/// columns of the space are uncut.
template <Scalar T>
class BlockBasis {
 public:
  using Small = SmallMatrix<Accumulator<T>>;

  explicit BlockBasis(const Space& space) : space_(space) {}

  /// Memory for blocks of so many columns.
  void reserve(Index columns);

  Index width() const { return width_; }
  /// The block itself is to be saved with it.
  void visit(StateArchive& archive) { archive.visit(width_); }
  DistMatrix<T> block() { return blocks_[current_].matrix(space_, uncut_columns(width_)); }
  /// The candidate: so many columns, the first of those that it had before.
  DistMatrix<T> candidate(Index columns);
  /// From now on there is no block.
  void forget() { width_ = 0; }

  /// block ← block + α X S for a tall X and a small S; or candidate.
  void add_product(double alpha, const DistMatrix<T>& X, const Small& S, DistMatrix<T>& Y);

  /// Adds the candidate's Gram matrix to the sums, which are then to be reduced.
  void add_gram(ColumnSums<T>& sums);
  /// Makes the candidate orthonormal and the block. Returns K: candidate = block · K, but for rounding and
  /// the part in the old block. Directions are left out that are short beside `norm`, or beside the
  /// candidate's longest column if that is longer: rounding, and no more.
  ///
  /// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya: Roundoff error analysis of the CholeskyQR2
  /// algorithm, ETNA 44, 2015), the second pass also against the old block: one reduction besides the one
  /// already made, and one more each, up to two, while a pass found the candidate ill-conditioned.
  Small adopt(ColumnSums<T>& sums, double norm);

 private:
  Small reduced_products(const ColumnSums<T>& sums, Index rows, Index cols);
  void add_products(const DistMatrix<T>& X, const DistMatrix<T>& Y, ColumnSums<T>& sums);
  Small project_candidate(ColumnSums<T>& sums);
  void transform_candidate(const Small& C);
  const Kernels<T>& kernels() const { return space_.grid->backend()->template kernels<T>(); }

  Space space_;
  Scratch<T> blocks_[2];
  std::size_t current_ = 0;
  Index width_ = 0, candidate_width_ = 0;
  SmallFactor<T> factor_;
  Buffer<T> products_, panel_;
  std::vector<T> host_products_;
  std::vector<double> numbers_;
  std::size_t first_product_ = 0;
};

}  // namespace gridlops
