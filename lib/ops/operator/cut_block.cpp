// SPDX-License-Identifier: BSD-3-Clause
#include "ops/operator/cut_block.hpp"

#include <vector>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"

namespace gridlops {

namespace {

// A matrix whose rows are cut over ranks travels as an array of parts in rank order. Each part is a matrix
// without gaps that has all columns of its rows. One column is such an array itself.

std::vector<Index> counts_of(const CutBlock& block, Index cols) {
  std::vector<Index> counts;
  for (int k = 0; k < block.parts(); ++k) counts.push_back(block.part(k).size * cols);
  return counts;
}

/// The place of part k in the array.
template <class T>
MatrixView<T> place_of(const CutBlock& block, int k, T* parts, Index cols) {
  const Range rows = block.part(k);
  return {parts + rows.begin * cols, rows.size, cols};
}

}  // namespace

template <Scalar T>
void reserve_gather(const CutBlock& block, Index cols) {
  block.comm.reserve(CommOperation::all_gather, counts_of(block, cols), sizeof(T));
}

template <Scalar T>
void reserve_reduce_scatter(const CutBlock& block, ReductionOrder order, Index cols) {
  block.comm.reserve(CommOperation::reduce_scatter, counts_of(block, cols), sizeof(T), order);
}

template <Scalar T>
void gather_parts(const Kernels<T>& kernels, MatrixView<const T> mine, const CutBlock& block,
                  MatrixView<T> whole, T* travelling) {
  T* const parts = travelling != nullptr ? travelling : whole.data;
  const MatrixView<T> own = place_of(block, block.comm.rank(), parts, whole.cols);
  kernels.copy(mine, own);
  block.comm.all_gather_v({own.data, own.size()}, {parts, whole.size()}, counts_of(block, whole.cols));
  if (travelling == nullptr || whole.empty()) return;
  for (int k = 0; k < block.parts(); ++k)
    kernels.copy(place_of<const T>(block, k, parts, whole.cols), whole.row_block(block.part(k)));
}

template <Scalar T>
void reduce_scatter_parts(const Kernels<T>& kernels, MatrixView<const T> partial, const CutBlock& block,
                          ReductionOrder order, MatrixView<T> mine, T* travelling) {
  const T* const parts = travelling != nullptr ? travelling : partial.data;
  if (travelling != nullptr && !partial.empty())
    for (int k = 0; k < block.parts(); ++k)
      kernels.copy(partial.row_block(block.part(k)), place_of(block, k, travelling, partial.cols));
  block.comm.reduce_scatter_v({parts, partial.size()}, counts_of(block, partial.cols),
                              {mine.data, mine.size()}, ReduceOp::sum, order);
}

std::optional<CutBlock> nested_block(const Space& space, const Space& other) {
  const ProcessGrid& grid = *space.grid;
  const Axis axis = space.rows.axis;
  std::optional<CutBlock> block;
  if (other.rows.axis == Axis::uncut || other.rows.axis == axis) return block;
  if (axis == Axis::all && grid.cols() > 1)
    block.emplace(CutBlock{grid.row_comm(), space.rows.partition, grid.my_row() * grid.cols()});
  if (axis == Axis::all_transposed && grid.rows() > 1)
    block.emplace(CutBlock{grid.col_comm(), space.rows.partition, grid.my_col() * grid.rows()});
  return block;
}

#define GRIDLOPS_INSTANTIATE(T)                                                                           \
  template void reserve_gather<T>(const CutBlock&, Index);                                                \
  template void reserve_reduce_scatter<T>(const CutBlock&, ReductionOrder, Index);                        \
  template void gather_parts(const Kernels<T>&, MatrixView<const T>, const CutBlock&, MatrixView<T>, T*); \
  template void reduce_scatter_parts(const Kernels<T>&, MatrixView<const T>, const CutBlock&,             \
                                     ReductionOrder, MatrixView<T>, T*);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
