// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "solve/method_state.hpp"
#include "solve/small_dense.hpp"

namespace gridlops {

/// Rows of a tall block that are multiplied in place at a time.
inline constexpr Index block_panel_rows = 1024;

/// A partition of uncut columns.
inline Partition uncut_columns(Index count) { return Partition::with_sizes({count}); }

/// An orthonormal block of vectors, and the candidate for the next one, which is nearly orthogonal to it. The
/// columns of the space are uncut.
template <Scalar T>
class BlockBasis {
 public:
  using Small = SmallMatrix<Accumulator<T>>;

  explicit BlockBasis(const Space& space) : space_(space) {}

  /// Names its memory to the state, and the block by this name. stack: the spaces that its own is a stack of.
  void describe(const char* name, std::vector<Space> stack, MethodState<T>& state);
  /// Memory for blocks of so many columns.
  void reserve(Index columns);

  Index width() const { return width_; }
  DistMatrix<T> block() { return matrix(current_, width_); }
  /// The candidate: so many columns, the first of those that it had before.
  DistMatrix<T> candidate(Index columns);
  /// From now on there is no block.
  void forget() { width_ = 0; }

  /// block ← block + α X S for a tall X and a small S; or candidate.
  void add_product(double alpha, const ConstDistMatrix<T>& X, const Small& S, DistMatrix<T>& Y);

  /// Makes sums over the ranks of these numbers, of which this rank has its share, in their place.
  using SumOver = std::function<void(std::vector<double>&)>;

  /// This rank's share of the candidate's Gram matrix, as numbers that adopt() expects to be summed.
  std::vector<double>& local_gram();
  /// Makes the candidate orthonormal and the block. Returns K: candidate = block · K, but for rounding and
  /// the part in the old block. Directions are left out that are short beside `norm`, or beside the
  /// candidate's longest column if that is longer: rounding, and no more.
  ///
  /// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya: Roundoff error analysis of the CholeskyQR2
  /// algorithm, ETNA 44, 2015), the second pass also against the old block: one reduction besides the one
  /// already made, and one more each, up to two, while a pass found the candidate ill-conditioned.
  Small adopt(const SumOver& sum, double norm);

 private:
  /// Memory: for blocks with so many local rows and columns it has so many elements.
  struct Part {
    Buffer<T>* buffer;
    Index (*elements)(Index rows, Index columns);
  };
  std::vector<Part> parts();

  DistMatrix<T> matrix(std::size_t which, Index columns) {
    return space_.matrix(uncut_columns(columns), blocks_[which]);
  }
  MatrixView<const T> upload(const Small& small);
  void add_local_products(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y);
  Small summed_products(std::size_t first, Index rows, Index cols) const;
  Small project_candidate(const SumOver& sum);
  void transform_candidate(const Small& C);
  const Kernels<T>& kernels() const { return space_.grid->backend()->template kernels<T>(); }

  Space space_;
  Buffer<T> blocks_[2];
  std::size_t current_ = 0;
  Index width_ = 0, candidate_width_ = 0;
  Buffer<T> factor_, products_, panel_;
  std::vector<T> host_;
  std::vector<double> numbers_;  // products, column by column, complex ones in two
};

}  // namespace gridlops
