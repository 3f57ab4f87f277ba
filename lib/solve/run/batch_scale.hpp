// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "solve/run/batch.hpp"

namespace gridlops {

/// Multiplies the problem of a batch by powers of two where norms of A, D or b are so large or small that
/// squares would leave the range of their type. X then holds the solution of that problem until the end.
template <Scalar T>
class BatchScale {
 public:
  explicit BatchScale(Batch<T>& batch) : batch_(batch) {}

  /// Scales columns of B that are very large or small (collective over the grid).
  void scale_data();
  /// Scales A and D if the norms at the start show that they are very large or small (collective over the
  /// grid). True if the method has to start with that. tries: how often that was so before.
  bool scale_operator(int tries);
  /// Goes on with the scales of a state that was saved (collective over the grid).
  void resume();
  /// Gives the columns of X the units of the problem as it was given. places: where they lie.
  void undo(DistMatrix<T>& whole_X, const ActiveColumns& places) const;
  /// Whether some column is scaled so that its x is, too.
  bool is_on() const;

 private:
  void set(const std::vector<ColumnScale>& scales);

  Batch<T>& batch_;
};

}  // namespace gridlops
