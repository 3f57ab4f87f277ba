// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "base/numbers.hpp"
#include "gridlops/base/trace.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/blas/cblas.hpp"

namespace gridlops {

/// C ← α op(A) B + β C on this rank.
template <Scalar S>
void multiply(Op op, S alpha, MatrixView<const S> A, MatrixView<const S> B, S beta, MatrixView<S> C) {
  if (C.empty()) return;
  const auto size = [](Index n) { return static_cast<cblas::Int>(n); };
  const auto stride = [](Index n) { return static_cast<cblas::Int>(std::max<Index>(n, 1)); };
  trace_flops(product_flops<S>(C.rows, B.rows, C.cols));
  cblas::gemm(op, Op::none, size(C.rows), size(C.cols), size(B.rows), alpha, A.data, stride(A.stride), B.data,
              stride(B.stride), beta, C.data, stride(C.stride));
}

/// The elements of another matrix of this shape, converted.
template <Scalar From, Scalar To>
void convert(MatrixView<const From> from, MatrixView<To> to) {
  for (Index j = 0; j < from.cols; ++j)
    std::transform(from.column(j), from.column(j) + from.rows, to.column(j),
                   [](From element) { return To(element); });
}

}  // namespace gridlops
