// SPDX-License-Identifier: BSD-3-Clause
#include "ops/one_pass_block.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "ops/algorithms.hpp"
#include "ops/panels.hpp"
#include "ops/row_sum.hpp"

namespace gridlops {

template <Scalar T>
OnePassBlock<T>::OnePassBlock(DistMatrix<T> A, const MatrixMultOptions& options)
    : block_(std::move(A), options), exchange_(backend(), reduction_order(options)) {}

template <Scalar T>
void OnePassBlock<T>::reserve(const CutBlock& models, const CutBlock& data, Index count) {
  block_.store_in_panels();
  block_.reserve(Op::none);
  block_.reserve(Op::adjoint);
  exchange_.reserve_gather(models, count, models_);
  exchange_.reserve_gather(data, count, data_);
  partial_.reserve(backend(), models.height() * 2 * count);
  if (data.parts() > 1) {
    product_of_row_.reserve(backend(), data.height() * count);
    travelling_.reserve(backend(), data.height() * count);
  }
  if (models.parts() > 1) {
    both_.reserve(backend(), models.part(models.comm.rank()).size * 2 * count);
    exchange_.reserve_reduce_scatter(models, 2 * count);
  }
}

template <Scalar T>
void OnePassBlock<T>::pass_once(const CutBlock& models, const CutBlock& data, const DistMatrix<T>& P,
                                const DistMatrix<T>& R, DistMatrix<T>& Q, DistMatrix<T>& U,
                                DistMatrix<T>& V) {
  const MatrixView<const T> all_P = exchange_.gather(P.local(), models, models_);
  const MatrixView<const T> all_R = exchange_.gather(R.local(), data, data_);
  const Index count = all_P.cols, height = U.local().rows;
  const MatrixView<T> partial = partial_.matrix(models.height(), 2 * count);
  MatrixView<T> all_Q = Q.local();
  if (data.parts() > 1) all_Q = product_of_row_.matrix(all_R.rows, count);
  multiply_once(all_P, all_R, data, all_Q, partial);
  if (data.parts() > 1)
    kernels().copy(std::as_const(all_Q).row_block(data.part(data.comm.rank())), Q.local());
  MatrixView<T> both = partial;
  if (models.parts() > 1) {
    both = both_.matrix(height, 2 * count);
    exchange_.reduce_scatter(partial, models, T(0), both);
  }
  kernels().copy(both.col_block({0, count}), U.local());
  kernels().copy(both.col_block({count, count}), V.local());
}

template <Scalar T>
void OnePassBlock<T>::multiply_once(MatrixView<const T> P, MatrixView<const T> R, const CutBlock& data,
                                    MatrixView<T> Q, MatrixView<T> W) {
  typename PanelMatrix<T>::Completion completed;
  std::optional<RowSum<T>> sum;
  if (data.parts() > 1) {
    sum.emplace(data.comm, exchange_.order(), kernels(), chunks(), Q, travelling_.matrix(Q.rows, Q.cols));
    completed = [&sum](Index computed) { return sum->advance(computed); };
  }
  if (const PanelMatrix<T>& panels = block_.panels(); !panels.empty()) {
    panels.one_pass(P, R, Q, W, completed);
    return;
  }
  const Index count = P.cols;
  block_.multiply(Op::none, T(1), P, T(0), Q);
  for (Index done = 0; completed && done < Q.rows;) done = completed(Q.rows);
  block_.multiply(Op::adjoint, T(1), R, T(0), W.col_block({0, count}));
  block_.multiply(Op::adjoint, T(1), Q, T(0), W.col_block({count, count}));
}

/// The same on all ranks of a grid row, also on those that have no columns of A.
template <Scalar T>
std::vector<Range> OnePassBlock<T>::chunks() const {
  const bool on_host = backend()->memory_space() == MemorySpace::host;
  const Index rows = block_.rows();
  return cut_into_panels(
      {{0, rows}}, on_host ? one_pass_chunk(block_.layout().cols.partition.largest(), sizeof(T)) : rows);
}

#define GRIDLOPS_INSTANTIATE(T) template class OnePassBlock<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
