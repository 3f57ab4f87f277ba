// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// A real sparse matrix whose rows each have their elements in one run of columns. Neither the beginnings nor
/// the ends of runs decrease from row to row, so columns have their elements in one run of rows, too. Rows
/// without elements do not count. A value type.
class RunMatrix {
 public:
  /// Rows of the identity with n columns: those with these increasing numbers.
  static RunMatrix selection(std::vector<Index> rows, Index n);
  /// Rows are added one by one.
  explicit RunMatrix(Index columns) : columns_(columns), begin_{0} {}
  void add_row(Index first, const std::vector<double>& weights);

  Index rows() const { return static_cast<Index>(first_.size()); }
  Index columns() const { return columns_; }
  /// The columns in which a row has elements.
  Range run(Index row) const;
  /// The columns in which any of these rows has elements.
  Range needed(Range rows) const;
  /// Those of the rows that have elements in these columns only. They follow each other.
  Range within(Range rows, Range columns) const;

  /// All rows of this have elements.
  RunMatrix transposed() const;
  /// Some of the rows.
  RunMatrix part(Range rows) const;

  /// As in RunWeights.
  const std::vector<Index>& first() const { return first_; }
  const std::vector<Index>& begin() const { return begin_; }
  const std::vector<double>& weights() const { return weights_; }

 private:
  Index columns_;
  std::vector<Index> first_, begin_;
  std::vector<double> weights_;
};

}  // namespace gridlops
