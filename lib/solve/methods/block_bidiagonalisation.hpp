// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "solve/methods/block_basis.hpp"
#include "solve/methods/projected_problem.hpp"
#include "solve/problem_scale.hpp"

namespace gridlops {

/// Bidiagonalises A from a block of data, and keeps V, orthonormal to rounding:
///
///   U₁ β = B,  V₁ L₁ = Aᴴ U₁,    U₊ K = A V − U Lᴴ,  V₊ L₊ = Aᴴ U₊ − V Kᴴ.
///
/// (Golub, Luk, Overton, ACM TOMS 7, 1981; only V is made orthogonal to all of itself: Simon, Zha, SIAM J.
/// Sci. Comput. 21, 2000.) Columns of B enter U₁ scaled to ‖b‖ = 1. They are first multiplied by powers of
/// two, and so is A if squares of its norms would leave the range of T: β, K and L are those of the products.
/// Columns that are zero or not finite are left out: theirs of β are zero.
template <Scalar T>
class BlockBidiagonalisation {
 public:
  using Small = SmallMatrix<Accumulator<T>>;

  /// A must outlive this.
  explicit BlockBidiagonalisation(const LinearOperator<T>& A)
      : A_(A), u_(A.range()), v_(A.domain(), BlockBasis<T>::Keeps::all_blocks) {}

  // These are collective over the grid, within a scope of failures. They throw OutOfMemory on all ranks.

  /// Makes U₁ and V₁. has_probe: gcv_probe() is one more column of B. False if V₁ is not finite.
  bool begin(const ConstDistMatrix<T>& B, bool has_probe);
  /// Saves or loads all but vectors(). They are those that shapes() has then, and need take_memory() before
  /// they are read, which throws OutOfMemory on this rank alone.
  void visit(StateArchive& archive);
  void take_memory() {
    u_.take_memory();
    v_.take_memory();
  }
  struct Shape {
    std::string name;
    Index rows, cols;
  };
  std::vector<Shape> shapes() const;
  /// Whether the last blocks fit what is before them, so that the next can be made. What was loaded may not.
  bool can_grow() const;
  /// V and the last U, by the names that they have in files.
  std::vector<NamedMatrix<T>> vectors();
  /// The elements that it takes on the rank at (row, col) for blocks with this many columns, once solutions
  /// are made of this many vectors.
  Index elements_at(int row, int col, Index columns, Index vectors) {
    return u_.elements_at(row, col, columns, 0) + v_.elements_at(row, col, columns, vectors);
  }
  enum class Step { made, complete, non_finite };
  /// Makes the next U and V, unless there is none, or it is not finite.
  Step grow();

  const ProjectedProblem<Accumulator<T>>& projected() const { return projected_; }
  BlockBasis<T>& v() { return v_; }
  /// Of column j of B: B(:, j) · 2^−power began.
  const std::vector<int>& powers() const { return powers_; }
  /// Of A, which is multiplied by 2^power.
  int power() const { return power_; }
  /// The norms of the columns of B times their powers, also of those that are not finite.
  const std::vector<double>& data_norms() const { return data_norms_; }
  /// X ← Aᴴ Y, times its power.
  void apply_adjoint(const ConstDistMatrix<T>& Y, DistMatrix<T>& X);
  /// A lower bound of ‖A‖, times its power.
  double norm() const { return norm_; }
  /// The columns that were multiplied with A or Aᴴ.
  Index products() const { return products_; }
  /// The vectors that the next step adds to those that solutions are made of.
  Index next_width() const { return v_.width(); }

 private:
  Communicator& comm() const { return A_.domain().grid->comm(); }
  Small begin_u(const ConstDistMatrix<T>& B, bool has_probe);
  bool begin_v();
  bool grow_u(Small& K);
  bool grow_v(const Small& K, Small& L);
  DistMatrix<T> next_v();
  bool adopt_v(Small& L);
  bool adopt(BlockBasis<T>& basis, double norm, Small& factor);

  ScaledOperator<T> A_;
  BlockBasis<T> u_, v_;
  ProjectedProblem<Accumulator<T>> projected_;
  std::vector<int> powers_;
  std::vector<double> data_norms_;
  int power_ = 0;
  Small L_;  // the last one
  double norm_ = 0;
  Index products_ = 0;
};

}  // namespace gridlops
