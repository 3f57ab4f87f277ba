// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// Whether two blocks have memory in common.
template <Scalar T>
bool overlap(MatrixView<const T> a, MatrixView<const T> b) {
  if (a.empty() || b.empty()) return false;
  const std::less_equal<const T*> ends_before;
  for (Index i = 0, j = 0; i < a.cols && j < b.cols;) {
    if (ends_before(a.column(i) + a.rows, b.column(j))) {
      ++i;
    } else if (ends_before(b.column(j) + b.rows, a.column(i))) {
      ++j;
    } else {
      return true;
    }
  }
  return false;
}

}  // namespace gridlops
