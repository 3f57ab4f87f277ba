// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/dist/column_arithmetic.hpp"

// Shared by proximal operators.

namespace gridlops {

inline ColumnScalars for_columns(ColumnOperand a, Index columns) { return a * ColumnScalars(columns, 1); }

inline double checked_sigma(double sigma) {
  require<UsageError>(sigma >= 0 && std::isfinite(sigma), "sigma is ", sigma,
                      "; it must be a finite number ≥ 0");
  return sigma;
}

inline std::string weighted(double sigma, const std::string& what) {
  return sigma == 1 ? what : message(sigma, " times ", what);
}

/// Memory for a matrix. It grows on all ranks together.
template <Scalar T>
class Scratch {
 public:
  DistMatrix<T>& matrix(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
    if (!grid->is_member()) return matrix_ = DistMatrix<T>(grid, layout);
    const auto largest_part = [](const Partition& parts) {
      Index largest = 0;
      for (int part = 0; part < parts.parts(); ++part) largest = std::max(largest, parts.size(part));
      return largest;
    };
    const Index elements = largest_part(layout.rows.partition) * largest_part(layout.cols.partition);
    if (elements > elements_) {
      elements_ = 0;  // the old memory is gone if there is not enough
      attempt(grid->comm(), [&] { memory_.reserve(grid->backend(), elements); });
      elements_ = elements;
    }
    const Index rows = layout.rows.partition.size(grid->my_part(layout.rows.axis)),
                cols = layout.cols.partition.size(grid->my_part(layout.cols.axis));
    return matrix_ = DistMatrix<T>(grid, layout, memory_.matrix(rows, cols));
  }

 private:
  Index elements_ = 0;
  Buffer<T> memory_;
  DistMatrix<T> matrix_;
};

}  // namespace gridlops
