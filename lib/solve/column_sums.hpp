// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "base/numbers.hpp"
#include "comm/failure_scope.hpp"
#include "gridlops/dist_matrix.hpp"

namespace gridlops {

/// Sums over all rows, one per column, of several kinds at once, so that the scalars of all columns travel in
/// a single reduction over the whole grid: add…() computes this rank's share, reduce() makes the sums, the
/// same bits on all ranks.
template <Scalar T>
class ColumnSums {
 public:
  ColumnSums(const ProcessGrid& grid, ReductionOrder order) : grid_(grid), order_(order) {}

  /// Takes memory for matrices with at most so many columns on this rank.
  void reserve(Index local_columns) { local_.reserve(grid_.backend(), sums_at_once * local_columns + 1); }

  /// For matrices of so many columns; forgets what was added before.
  void begin(Index columns) {
    columns_ = columns;
    values_.clear();
    pending_.clear();
    used_ = 0;
  }
  /// The next kind of sum: ‖xⱼ‖².
  void add_norms_squared(const ConstDistMatrix<T>& X) {
    add<double>(
        X, [&](const Kernels<T>& kernels, double* sums) { kernels.column_norms_squared(X.local(), sums); });
  }
  /// The next kind of sum: Re xⱼᴴ yⱼ.
  void add_real_dots(const ConstDistMatrix<T>& X, const ConstDistMatrix<T>& Y) {
    add<Accumulator<T>>(X, [&](const Kernels<T>& kernels, Accumulator<T>* sums) {
      kernels.column_dots(X.local(), Y.local(), sums);
    });
  }
  /// The next kind of sum: the penalty of xⱼ.
  void add_penalties(Threshold kind, const ConstDistMatrix<T>& X) {
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

  /// All ranks throw here what went wrong on one of them, in an operator or a callback, since the last
  /// reduction.
  void reduce() {
    FailureScope failures;
    failures.run([this] { collect(); });
    failures.reduce(grid_.comm(), values_, order_);
  }

  double of(std::size_t kind, Index column) const {
    return values_[kind * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
  }

 private:
  /// Sums of this rank's columns that are in the backend's memory still.
  struct Pending {
    Index begin = 0, columns = 0, step = 1;  // in local_, in doubles
    std::size_t place = 0;                   // of the first in values_
  };

  template <class Value, class Compute>
  void add(const ConstDistMatrix<T>& X, const Compute& compute) {
    const std::size_t first = values_.size();
    values_.resize(first + static_cast<std::size_t>(columns_), 0.0);
    const Index local_columns = X.local().cols;
    if (!X.owned() || local_columns == 0) return;
    constexpr Index step = sizeof(Value) / sizeof(double);
    // Complex sums lie where complex numbers may: devices store them whole.
    used_ = (used_ + step - 1) / step * step;
    // What there is no more room for is brought to the host first.
    if (used_ + step * local_columns > local_.size()) collect();
    compute(grid_.backend()->template kernels<T>(), reinterpret_cast<Value*>(local_.data() + used_));
    pending_.push_back(
        {used_, local_columns, step, first + static_cast<std::size_t>(X.local_col_range().begin)});
    used_ += step * local_columns;
  }

  /// Brings what add() left in the backend's memory to the host, all at once.
  void collect() {
    if (used_ > 0) {
      host_.resize(static_cast<std::size_t>(used_));
      grid_.backend()->download(local_.data(), host_.data(), used_ * static_cast<Index>(sizeof(double)));
    }
    for (const Pending& sums : pending_)
      for (Index j = 0; j < sums.columns; ++j)
        values_[sums.place + static_cast<std::size_t>(j)] = host_[at(sums.begin + sums.step * j)];
    pending_.clear();
    used_ = 0;
  }

  static constexpr Index sums_at_once =
      4;  // per column, a complex one being two, beside one gap before these

  const ProcessGrid& grid_;
  ReductionOrder order_;
  Index columns_ = 0;
  std::vector<double> values_, host_;
  Buffer<double> local_;
  Index used_ = 0;
  std::vector<Pending> pending_;
};

}  // namespace gridlops
