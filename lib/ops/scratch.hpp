// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/linear_operator.hpp"

namespace gridlops {

/// Memory for a matrix in some space that operators and solvers need while they work: it grows to the largest
/// asked for and is then kept, so that iterating allocates nothing.
template <Scalar T>
class Scratch {
 public:
  /// An uninitialised matrix in `space`; the one given out before becomes invalid.
  DistMatrix<T> matrix(const Space& space, const Partition& columns) {
    if (!space.grid->is_member()) return DistMatrix<T>(space.grid, space.layout(columns), {});
    const Index rows = space.local_rows(), cols = space.local_columns(columns);
    memory_.reserve(space.grid->backend(), rows * cols);
    return DistMatrix<T>(space.grid, space.layout(columns), memory_.matrix(rows, cols));
  }

 private:
  Buffer<T> memory_;
};

}  // namespace gridlops
