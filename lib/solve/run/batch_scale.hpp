// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "solve/run/batch.hpp"

namespace gridlops {

/// Multiplies the problem of a batch by powers of two if norms of A, D or b are so large or small that their
/// squares would leave the range of their type. Until the end, X then holds the solution of the scaled
/// problem.
template <Scalar T>
class BatchScale {
 public:
  explicit BatchScale(Batch<T>& batch) : batch_(batch) {}

  /// Scales columns of B that are very large or small (collective over the grid).
  void scale_data();
  /// Scales A and D if the norms at the start show that they are very large or small (collective over the
  /// grid). Returns true if the method must start again with these scales. tries: how often this has happened
  /// before.
  bool scale_operator(int tries);
  /// Resumes with the scales of a saved state (collective over the grid).
  void resume();
  /// Returns the columns of X to the units of the original problem. places: their current places.
  void undo(DistMatrix<T>& whole_X, const ActiveColumns& places) const;
  /// Whether some column's scale also changes its x.
  bool is_on() const;

 private:
  void set(const std::vector<ColumnScale>& scales);

  Batch<T>& batch_;
};

}  // namespace gridlops
