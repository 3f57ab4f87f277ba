// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "dist/axis_ranks.hpp"
#include "dist/box_exchange.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/space.hpp"

// Helpers shared by operators on arrays.

namespace gridlops {

/// Y ← β Y.
template <Scalar T>
void multiply_by(T beta, DistMatrix<T>& Y) {
  if (beta == T(1)) return;
  if (beta == T(0)) return Y.set_zero();
  const ConstDistMatrix<T>& old = Y;
  Y.grid()->backend()->template kernels<T>().add(beta, old.local(), T(0), Y.local());
}

/// The exchange in which each rank that holds a part of the space requests the box that `wants` returns for
/// its block.
template <Scalar T, class Wants>
BoxExchange<T> exchange_in(const Space& space, Wants&& wants) {
  const AxisRanks ranks = ranks_along(*space.grid, space.rows.axis);
  std::vector<BoxesOfRank> boxes;
  for (const int part : ranks.parts) boxes.push_back({space.dims.block(part), wants(part)});
  return {space.grid->backend(), ranks.comm, boxes};
}

/// The space of the same arrays with one dimension whole on every rank: cut along the longest of the others,
/// or not at all if there is none.
inline Space whole_along(const Space& space, int dim) {
  const Dims& dims = space.dims;
  int longest = -1;
  for (int d = 0; d < dims.count(); ++d)
    if (d != dim && (longest < 0 || dims.size(d) > dims.size(longest))) longest = d;
  return longest < 0 ? moved_to(Axis::uncut, space)
                     : array_space(space.grid, dims.sizes(), longest, space.rows.axis, space.columns);
}

/// The positions of a box's elements in the C order of an array of these sizes, or of its first dimensions.
inline std::vector<Index> elements_of(const Box& box, const std::vector<Index>& sizes) {
  std::vector<Index> numbers{0};
  for (std::size_t d = 0; d < box.size(); ++d) {
    std::vector<Index> finer;
    finer.reserve(numbers.size() * at(box[d].size));
    for (const Index outer : numbers)
      for (Index i = box[d].begin; i < box[d].end(); ++i) finer.push_back(outer * sizes[d] + i);
    numbers = std::move(finer);
  }
  return numbers;
}

/// Throws ShapeError, on all ranks, if the space has no arrays. The message names `what`, which needs them.
inline void require_dims(const Space& space, const char* what) {
  require<ShapeError>(space.dims.count() > 0, what, " needs a space of arrays, but this one, ",
                      space.describe(), ", has no dimensions; make it with array_space()");
}

/// Throws ShapeError, on all ranks, if the space has no arrays, or these no such dimension.
inline void require_dim(const Space& space, int dim, const char* what) {
  require_dims(space, what);
  require<ShapeError>(0 <= dim && dim < space.dims.count(), what, " along dimension ", dim,
                      " of an array of ", space.dims.describe(),
                      " is impossible: there is no such dimension; they are numbered from 0");
}

}  // namespace gridlops
