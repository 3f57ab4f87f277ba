// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/backend.hpp"
#include "gridlops/ops/space.hpp"

namespace gridlops {

/// A block of X or Y that the ranks of `comm` hold in parts, stacked by rows: rank k has part first_part + k
/// of `rows`.
struct CutBlock {
  Communicator& comm;
  const Partition& rows;
  int first_part;

  int parts() const { return comm.size(); }
  Range part(int k) const {
    return {rows.begin(first_part + k) - rows.begin(first_part), rows.size(first_part + k)};
  }
  Index height() const { return part(parts() - 1).end(); }
};

// A block travels in memory of its size that the caller has. One column needs none: null.

/// Takes the communicator's memory for this many columns. Sends nothing.
template <Scalar T>
void reserve_gather(const CutBlock& block, Index cols);
template <Scalar T>
void reserve_reduce_scatter(const CutBlock& block, ReductionOrder order, Index cols);

/// whole ← all parts of the block (collective over its ranks). `whole` lies without gaps.
template <Scalar T>
void gather_parts(const Kernels<T>& kernels, MatrixView<const T> mine, const CutBlock& block,
                  MatrixView<T> whole, T* travelling);
/// mine ← this rank's part of the sum of all ranks' `partial` (collective over the block's ranks). Both lie
/// without gaps.
template <Scalar T>
void reduce_scatter_parts(const Kernels<T>& kernels, MatrixView<const T> partial, const CutBlock& block,
                          ReductionOrder order, MatrixView<T> mine, T* travelling);

/// The axis of the larger blocks that consecutive parts make up: of the blocks of grid rows for `all`, of
/// grid columns for `all_transposed`. Other axes are their own.
constexpr Axis outer_axis(Axis axis) {
  return axis == Axis::all ? Axis::grid_rows : axis == Axis::all_transposed ? Axis::grid_cols : axis;
}

/// The block of a space that this rank's functions in local_operator() have, if it is cut over several ranks:
/// if both spaces are cut, along different dimensions of the grid, and this one over all ranks. The rank is a
/// member of the grid.
std::optional<CutBlock> nested_block(const Space& space, const Space& other);

}  // namespace gridlops
