// SPDX-License-Identifier: BSD-3-Clause
#include "ops/array/run_matrix.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/numbers.hpp"

namespace gridlops {

RunMatrix RunMatrix::selection(std::vector<Index> rows, Index n) {
  RunMatrix result(n);
  result.first_ = std::move(rows);
  result.begin_.clear();
  return result;
}

void RunMatrix::add_row(Index first, const std::vector<double>& weights) {
  first_.push_back(first);
  weights_.insert(weights_.end(), weights.begin(), weights.end());
  begin_.push_back(static_cast<Index>(weights_.size()));
}

Range RunMatrix::run(Index row) const {
  const Index first = first_[at(row)];
  if (begin_.empty()) return {std::max<Index>(first, 0), first < 0 ? 0 : 1};
  return {first, begin_[at(row) + 1] - begin_[at(row)]};
}

Range RunMatrix::needed(Range rows) const {
  Range needed;
  for (Index row = rows.begin; row < rows.end(); ++row) {
    const Range own = run(row);
    if (own.size > 0 && needed.size == 0) needed = own;
    if (own.size > 0) needed.size = own.end() - needed.begin;
  }
  return needed;
}

Range RunMatrix::within(Range rows, Range columns) const {
  Index begin = rows.begin, end = rows.end();
  for (Index row = rows.begin; row < rows.end(); ++row) {
    const Range own = run(row);
    if (own.size == 0) continue;
    if (own.begin < columns.begin || columns.size == 0) begin = row + 1;
    if (own.end() > columns.end()) end = std::min(end, row);
  }
  return begin < end ? Range{begin, end - begin} : Range{rows.begin, 0};
}

RunMatrix RunMatrix::transposed() const {
  RunMatrix result(rows());
  if (begin_.empty()) {
    result.begin_.clear();
    result.first_.assign(at(columns_), -1);
    for (Index row = 0; row < rows(); ++row)
      if (first_[at(row)] >= 0) result.first_[at(first_[at(row)])] = row;
    return result;
  }
  result.first_.assign(at(columns_), 0);
  result.begin_.assign(at(columns_) + 1, 0);
  std::vector<Index>& begin = result.begin_;
  for (Index row = 0; row < rows(); ++row) {
    const Range own = run(row);
    for (Index column = own.begin; column < own.end(); ++column)
      if (++begin[at(column) + 1] == 1) result.first_[at(column)] = row;
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<Index> next = begin;
  result.weights_.resize(weights_.size());
  for (Index row = 0; row < rows(); ++row) {
    const Range own = run(row);
    for (Index k = 0; k < own.size; ++k)
      result.weights_[at(next[at(own.begin + k)]++)] = weights_[at(begin_[at(row)] + k)];
  }
  return result;
}

RunMatrix RunMatrix::part(Range rows) const {
  RunMatrix result(columns_);
  result.first_.assign(first_.begin() + rows.begin, first_.begin() + rows.end());
  result.begin_.clear();
  if (begin_.empty()) return result;
  const Index begin = begin_[at(rows.begin)];
  for (Index row = rows.begin; row <= rows.end(); ++row) result.begin_.push_back(begin_[at(row)] - begin);
  result.weights_.assign(weights_.begin() + begin, weights_.begin() + begin_[at(rows.end())]);
  return result;
}

}  // namespace gridlops
