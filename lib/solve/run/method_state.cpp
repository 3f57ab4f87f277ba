// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/method_state.hpp"

#include <algorithm>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/ops/operator_algebra.hpp"

namespace gridlops {

namespace {

template <Scalar T>
DistMatrix<T> first_columns(DistMatrix<T>& X, const Partition& columns) {
  return X.column_slice(std::vector<Index>(at(columns.parts()), 0), columns);
}

/// Adds the matrix, or, if its space is a stack, one matrix for each space of the stack.
template <Scalar T>
void add_named(const char* name, DistMatrix<T> matrix, const std::vector<Space>& stack,
               std::vector<NamedMatrix<T>>& all) {
  if (stack.size() <= 1) return all.push_back({name, std::move(matrix)});
  for (std::size_t k = 0; k < stack.size(); ++k)
    all.push_back({k == 0 ? name : message(name, "_", k), stack_rows(stack, k, matrix)});
}

}  // namespace

template <Scalar T>
Index MethodState<T>::elements_at(int row, int col, Index columns) const {
  const auto rows_in = [row, col](const Space& space) {
    return space.layout(0).row_range(*space.grid, row, col).size;
  };
  Index elements = 0, spare = 0;
  for (const Vector& vector : vectors_) {
    elements += rows_in(vector.space) * columns;
    if (*vector.name != '\0') spare = std::max(spare, rows_in(vector.space));
  }
  for (const Memory& other : memory_) elements += other.elements(rows_in(other.space), columns);
  return elements + (columns > 1 ? spare : 0);
}

template <Scalar T>
DistMatrix<T> MethodState<T>::view(const Vector& vector, const Partition& columns) {
  return vector.space.matrix(columns, vector.memory);
}

template <Scalar T>
void MethodState<T>::begin_batch(DistMatrix<T>& X, const ColumnBatch& batch) {
  batch_ = batch.sizes;
  x_of_batch_ = X.column_slice(batch.first, batch_);
  for (Result& result : results_) result.of_batch = result.whole->column_slice(batch.first, batch_);
  const auto& backend = X.grid()->backend();
  Index spare = x_of_batch_.local().rows;
  for (Vector& vector : vectors_) {
    const Index rows = vector.space.local_rows();
    vector.memory.reserve(backend, rows * vector.space.local_columns(batch_));
    if (*vector.name != '\0') spare = std::max(spare, rows);
  }
  for (const Memory& other : memory_)
    other.buffer->reserve(backend,
                          other.elements(other.space.local_rows(), other.space.local_columns(batch_)));
  if (x_of_batch_.local().cols > 1) spare_.reserve(backend, spare);
  for (Scalars& scalars : scalars_) scalars.all.assign(at(batch_.total()), 0.0);
}

template <Scalar T>
void MethodState<T>::put_scalars_away(const ActiveColumns& columns) {
  for (Scalars& scalars : scalars_)
    for (Index k = 0; k < columns.count(); ++k) scalars.all[at(columns.column(k))] = (*scalars.active)[k];
}

template <Scalar T>
void MethodState<T>::show(const ActiveColumns& columns) {
  const Partition& active = columns.partition();
  *solution_ = first_columns(x_of_batch_, active);
  for (Result& result : results_) *result.view = first_columns(result.of_batch, active);
  for (Vector& vector : vectors_) *vector.view = view(vector, active);
  for (Scalars& scalars : scalars_) {
    *scalars.active = ColumnScalars(columns.count());
    for (Index k = 0; k < columns.count(); ++k) (*scalars.active)[k] = scalars.all[at(columns.column(k))];
  }
}

template <Scalar T>
void MethodState<T>::swap(const ActiveColumns::Swaps& swaps) {
  if (swaps.empty()) return;
  std::vector<MatrixView<T>> blocks{x_of_batch_.local()};
  for (Result& result : results_) blocks.push_back(result.of_batch.local());
  for (Vector& vector : vectors_)
    if (*vector.name != '\0') blocks.push_back(view(vector, batch_).local());
  const Kernels<T>& kernels = x_of_batch_.grid()->backend()->template kernels<T>();
  for (const auto& [i, j] : swaps) {
    for (const MatrixView<T>& block : blocks) {
      const MatrixView<T> first = block.col_block({i, 1}), second = block.col_block({j, 1});
      const MatrixView<T> spare(spare_.data(), first.rows, 1);
      kernels.copy(first, spare);
      kernels.copy(second, first);
      kernels.copy(spare, second);
    }
  }
}

template <Scalar T>
Index MethodState<T>::lasting_count() const {
  const auto in_stack = [](const std::vector<Space>& stack) {
    return std::max<Index>(1, static_cast<Index>(stack.size()));
  };
  Index count = static_cast<Index>(results_.size());
  for (const Vector& vector : vectors_) count += *vector.name == '\0' ? 0 : in_stack(vector.stack);
  for (const Shared& shared : shared_) count += in_stack(shared.stack);
  return count;
}

template <Scalar T>
std::vector<NamedMatrix<T>> MethodState<T>::lasting() {
  std::vector<NamedMatrix<T>> all;
  for (Result& result : results_)
    all.push_back(
        {result.name, DistMatrix<T>(result.whole->grid(), result.whole->layout(), result.whole->local())});
  for (Vector& vector : vectors_)
    if (*vector.name != '\0') add_named(vector.name, view(vector, batch_), vector.stack, all);
  for (Shared& shared : shared_) add_named(shared.name, shared.matrix(), shared.stack, all);
  return all;
}

template <Scalar T>
void MethodState<T>::visit(StateArchive& archive) {
  for (Scalars& scalars : scalars_) archive.visit_all(scalars.all);
  for (const auto& number : numbers_) number(archive);
}

#define GRIDLOPS_INSTANTIATE(T) template class MethodState<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
