// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "gridlops/backend.hpp"

namespace gridlops {

// A matrix of which every rank has some rows travels as one array of parts: each a matrix without gaps, with
// all columns of its rows, one after the other in rank order. `counts` are the parts' elements.

/// whole ← the parts, one below the other.
template <Scalar T>
void unstack(const Kernels<T>& kernels, const T* parts, std::span<const Index> counts, MatrixView<T> whole) {
  if (whole.empty()) return;
  Index row = 0;
  for (const Index count : counts) {
    const Index rows = count / whole.cols;
    kernels.copy(MatrixView<const T>(parts, rows, whole.cols), whole.row_block({row, rows}));
    parts += count;
    row += rows;
  }
}

/// parts ← the rows of whole.
template <Scalar T>
void stack(const Kernels<T>& kernels, MatrixView<const T> whole, std::span<const Index> counts, T* parts) {
  if (whole.empty()) return;
  Index row = 0;
  for (const Index count : counts) {
    const Index rows = count / whole.cols;
    kernels.copy(whole.row_block({row, rows}), MatrixView<T>(parts, rows, whole.cols));
    parts += count;
    row += rows;
  }
}

}  // namespace gridlops
