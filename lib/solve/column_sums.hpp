// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/dist_matrix.hpp"

namespace gridlops {

/// Sums over all rows, one per column, of several kinds at once, so that the scalars of all columns travel in
/// a single reduction over the whole grid: add…() computes this rank's share, reduce() makes the sums, the
/// same bits on all ranks.
template <Scalar T>
class ColumnSums {
 public:
  ColumnSums(const ProcessGrid& grid, ReductionOrder order) : grid_(grid), order_(order) {}

  /// For matrices of so many columns; forgets what was added before.
  void begin(Index columns) {
    columns_ = columns;
    values_.clear();
  }
  /// The next kind of sum: ‖xⱼ‖².
  void add_norms_squared(const DistMatrix<T>& X) {
    add<double>(
        X, [&](const Kernels<T>& kernels, double* sums) { kernels.column_norms_squared(X.local(), sums); });
  }
  /// The next kind of sum: Re xⱼᴴ yⱼ.
  void add_real_dots(const DistMatrix<T>& X, const DistMatrix<T>& Y) {
    add<Accumulator<T>>(X, [&](const Kernels<T>& kernels, Accumulator<T>* sums) {
      kernels.column_dots(X.local(), Y.local(), sums);
    });
  }
  /// The next kind of sum: the penalty of xⱼ.
  void add_penalties(Threshold kind, const DistMatrix<T>& X) {
    add<double>(
        X, [&](const Kernels<T>& kernels, double* sums) { kernels.column_penalties(kind, X.local(), sums); });
  }
  /// Any numbers of this rank's share, after the sums of columns; returns where they begin.
  std::size_t add_numbers(const std::vector<double>& numbers) {
    values_.insert(values_.end(), numbers.begin(), numbers.end());
    return values_.size() - numbers.size();
  }
  std::size_t add_number(double number) {
    values_.push_back(number);
    return values_.size() - 1;
  }
  double number(std::size_t position) const { return values_[position]; }

  void reduce() { grid_.comm().all_reduce(values_, ReduceOp::sum, order_); }

  double of(std::size_t kind, Index column) const {
    return values_[kind * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
  }

 private:
  template <class Value, class Compute>
  void add(const DistMatrix<T>& X, const Compute& compute) {
    const std::size_t first = values_.size();
    values_.resize(first + static_cast<std::size_t>(columns_), 0.0);
    const Index local_columns = X.local().cols;
    if (!X.owned() || local_columns == 0) return;
    Backend& backend = *grid_.backend();
    // Complex sums need twice the room.
    local_.reserve(grid_.backend(), 2 * local_columns);
    auto* const sums = reinterpret_cast<Value*>(local_.data());
    compute(backend.kernels<T>(), sums);
    host_.resize(static_cast<std::size_t>(2 * local_columns));
    backend.download(sums, host_.data(), local_columns * static_cast<Index>(sizeof(Value)));
    const std::size_t step = sizeof(Value) / sizeof(double);
    const std::size_t begin = first + static_cast<std::size_t>(X.local_col_range().begin);
    for (std::size_t j = 0; j < static_cast<std::size_t>(local_columns); ++j)
      values_[begin + j] = host_[step * j];
  }

  const ProcessGrid& grid_;
  ReductionOrder order_;
  Index columns_ = 0;
  std::vector<double> values_, host_;
  Buffer<double> local_;
};

}  // namespace gridlops
