// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

// Weights of the numbers of B: a matrix W of the size of B, whose elements are real and not negative, also
// where its type is complex. SolverOperands::weights gives them to a solver, which minimises
// ‖W∘(A x − b)‖² for each column. A weight of 0 leaves a number out, whatever B has there.
//
//   auto W = allocate_matrix<double>(B.grid(), B.layout());
//   W.fill([](Index, Index) { return 1.0; });
//   mark_holes(B, W);                         // NaN in B are missing
//   cgls(*A, B, X, {}, {.weights = &W});

/// The weights of a column of B.
struct WeightRange {
  double least = 1, largest = 1;
};

/// B ← W∘B, and 0 where a weight is 0, whatever B has there (collective over the grid; idle ranks return at
/// once). Returns the weights' range of each column, the same on all members. Throws, on all members,
/// ShapeError unless W lies as B does, and UsageError, with the place, for a weight that is negative, not
/// finite or not real, where W and B overlap, and where the largest number of a column of W∘B would be so
/// small or large that it lost digits.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<WeightRange> weigh(const ConstDistMatrix<T>& W, DistMatrix<T>& B);

/// W ← 0 where B is NaN, and no other weight is touched (collective over the grid). Returns how many elements
/// of B are NaN, the same on all members, and 0 on idle ranks. Throws ShapeError unless W lies as B does.
template <Scalar T>
GRIDLOPS_EXPORT Index mark_holes(const ConstDistMatrix<T>& B, DistMatrix<T>& W);

}  // namespace gridlops
