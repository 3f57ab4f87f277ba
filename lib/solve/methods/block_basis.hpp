// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <vector>

#include "solve/methods/small_dense.hpp"
#include "solve/run/method_state.hpp"

namespace gridlops {

/// Directions of a candidate that are at most this many ε long, relative to the norm, are left out.
inline constexpr double shortest_direction = 30;

/// The partition of uncut columns.
inline Partition uncut_columns(Index count) { return Partition::with_sizes({count}); }

/// An orthonormal block of vectors, and the candidate for the next block, which is nearly orthogonal to it;
/// or all blocks so far, orthonormal together. The columns of the space are uncut.
template <Scalar T>
class BlockBasis {
 public:
  using Small = SmallMatrix<Accumulator<T>>;
  enum class Keeps { last_block, all_blocks };
  /// Replaces numbers, of which every rank has its share, by their sums over the ranks.
  using SumOver = std::function<void(std::vector<double>&)>;

  explicit BlockBasis(const Space& space, Keeps keeps = Keeps::last_block)
      : space_(space), keeps_(keeps), blocks_(keeps == Keeps::last_block ? 2 : 0) {}

  /// Describes its memory to the state, and gives the block this name. stack: the spaces that make up its own
  /// as a stack.
  void describe(const char* name, std::vector<Space> stack, MethodState<T>& state);
  /// Takes the memory for blocks with this many columns; where all are kept, for one more.
  void reserve(Index columns);
  /// The elements that the basis takes on the rank at (row, col) where all blocks are kept, once it has this
  /// many vectors before the last block, in blocks with this many columns; or where only the last is kept.
  Index elements_at(int row, int col, Index columns, Index vectors);

  Index width() const { return width_; }
  DistMatrix<T> block() { return matrix(block_, width_); }
  /// The candidate, reduced to its first `columns` columns.
  DistMatrix<T> candidate(Index columns);
  /// Drops the block.
  void forget() { width_ = 0; }

  /// The vectors that the candidate must be orthogonal to: the block, or all blocks, a matrix for each
  /// buffer.
  std::vector<DistMatrix<T>> kept();
  /// Saves or loads how many vectors are kept, and where; columns: the most of a block. After loading,
  /// take_memory() makes kept() and block(), to be filled. It throws OutOfMemory on this rank alone.
  void visit(StateArchive& archive, Index columns);
  void take_memory();
  /// The numbers of vectors in the buffers that have some, where all blocks are kept.
  const std::vector<Index>& filled() const { return filled_; }

  /// Y ← Y + α X S for a tall X and a small S.
  void add_product(double alpha, const ConstDistMatrix<T>& X, const Small& S, DistMatrix<T>& Y);
  /// Where all blocks are kept, takes the memory for products of them with this many columns.
  void reserve_products(Index columns);
  /// [all blocks]ᴴ Y.
  Small products_with(const ConstDistMatrix<T>& Y, const SumOver& sum);
  /// Y ← Y + [all blocks] S. S has a row for each vector of the first blocks, and need not have them for all.
  void add_combination(const Small& S, DistMatrix<T>& Y);

  /// Returns this rank's share of the candidate's Gram matrix. Sum the numbers over the ranks before adopt().
  std::vector<double>& local_gram();
  /// Makes the candidate orthonormal and then adopts it as the block. Returns K with candidate = block · K,
  /// up to rounding and the component in the blocks that are kept. Directions of at most shortest_direction ·
  /// ε times `norm`, or the length of the candidate's longest column if that is longer, are left out.
  ///
  /// CholeskyQR2 (Yamamoto, Nakatsukasa, Yanagisawa, Fukaya: Roundoff error analysis of the CholeskyQR2
  /// algorithm, ETNA 44, 2015). The second pass also orthogonalises against what is kept. It takes one
  /// reduction besides the one already made. Up to two more passes, each with one reduction, follow while the
  /// candidate is ill-conditioned.
  Small adopt(const SumOver& sum, double norm);

 private:
  struct KeptBuffer {
    Buffer<T>* buffer;
    typename MethodState<T>::Elements elements;
  };
  std::vector<KeptBuffer> kept_buffers();
  /// How many rows of a tall block are multiplied in place at a time: as many as stay in a host's cache; on a
  /// device, which launches two kernels each time, all. A planned grid may have no backend; it stands
  /// for hosts.
  Index most_panel_rows() const {
    const auto& backend = space_.grid->backend();
    const bool on_device = backend != nullptr && backend->memory_space() == MemorySpace::device;
    return on_device ? std::numeric_limits<Index>::max() : 1024;
  }
  /// A buffer of blocks, and the first column there.
  struct Place {
    std::size_t buffer = 0;
    Index first = 0;
  };

  DistMatrix<T> matrix(Place place, Index columns);
  MatrixView<const T> upload(const Small& small);
  void add_local_products(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y);
  Small summed_products(std::size_t first, Index rows, Index cols) const;
  Small project_candidate(const SumOver& sum, std::vector<double>& floors);
  void transform_candidate(const Small& C);
  const Kernels<T>& kernels() const { return space_.grid->backend()->template kernels<T>(); }

  Space space_;
  Keeps keeps_;
  std::vector<Buffer<T>> blocks_;
  // Where all blocks are kept, the columns that each buffer can hold, and those that it holds.
  std::vector<Index> capacities_, filled_;
  Place block_{0, 0}, candidate_{1, 0};
  Index width_ = 0, candidate_width_ = 0;
  Buffer<T> factor_, products_, panel_;
  std::vector<T> host_;
  std::vector<double> numbers_;  // products, column by column; a complex number takes two entries
};

}  // namespace gridlops
