// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include "base/instantiate.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "local/blas/cblas.hpp"
#include "local/host_kernels.hpp"
#include "local/threads.hpp"

namespace gridlops {
namespace {

/// The block of A that op maps to the block (rows, cols) of op(A).
template <Scalar T>
MatrixView<const T> stored_block(Op op, MatrixView<const T> A, Range rows, Range cols) {
  return op == Op::none ? A.block(rows, cols) : A.block(cols, rows);
}

cblas::Int narrowed(Index size, Index limit) {
  require_here<UsageError>(size <= limit, "a local block has ", size,
                           " rows, or that leading dimension, but BLAS counts with integers up to ", limit,
                           "; use more ranks, or a BLAS with 64-bit integers");
  return static_cast<cblas::Int>(size);
}

/// The leading dimension for BLAS, which requires at least max(1, rows) even for a single column.
template <class T>
cblas::Int leading_dimension(MatrixView<T> A, Index limit) {
  return narrowed(std::max<Index>(1, A.cols <= 1 ? A.rows : A.stride), limit);
}

template <Scalar T>
void scale(T beta, MatrixView<T> C) {
  const HostKernels<T> kernels;
  if (beta == T(0)) {
    kernels.fill(T(0), C);
  } else if (beta != T(1)) {
    for (Index j = 0; j < C.cols; ++j) kernels.column_scale(&beta, C.col_block({j, 1}));
  }
}

/// C ← α Zᴴ + β C, tile by tile, so that both sides stay in the first-level cache.
template <Scalar T>
void add_adjoint(T alpha, MatrixView<const T> Z, T beta, MatrixView<T> C) {
  constexpr Index tile = 16;
  for (Index j0 = 0; j0 < C.cols; j0 += tile) {
    const Index j_end = std::min(j0 + tile, C.cols);
    for (Index i0 = 0; i0 < C.rows; i0 += tile) {
      const Index i_end = std::min(i0 + tile, C.rows);
      for (Index j = j0; j < j_end; ++j) {
        T* const c = C.column(j);
        const T* const z = Z.data + j;
        if (beta == T(0)) {
          for (Index i = i0; i < i_end; ++i) c[i] = alpha * conjugate(z[i * Z.stride]);
        } else {
          for (Index i = i0; i < i_end; ++i) c[i] = alpha * conjugate(z[i * Z.stride]) + beta * c[i];
        }
      }
    }
  }
}

/// Whether C ← α Aᴴ B + β C is faster by way of Z = Bᴴ A. That is true if C is wide and low, as with SUMMA's
/// panels: OpenBLAS then packs all of B for a few rows of C, which takes up to a fifth of the time.
bool adjoint_is_faster_transposed(Index rows, Index cols, Index inner) {
  return rows >= 64 && rows <= 512 && cols >= 2 * rows && inner >= 256;
}

/// C ← α Aᴴ B + β C by way of Z = Bᴴ A, some columns of C at a time. Returns false, leaving C unchanged, if
/// there is no memory for that.
template <Scalar T>
bool adjoint_gemm_transposed(cblas::Int inner, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
                             MatrixView<T> C, cblas::Int lda, cblas::Int ldb) {
  constexpr Index elements = (Index{4} << 20) / static_cast<Index>(sizeof(T));
  const Index width = std::min(C.cols, std::max(C.rows, elements / C.rows));
  // The transposition reads rows of Z; their elements must not all fall on one set of a cache.
  const Index stride = width + 64 / static_cast<Index>(sizeof(T));
  const std::unique_ptr<T[]> memory(new (std::nothrow) T[at(stride * C.rows)]);
  if (memory == nullptr) return false;
  for (Index begin = 0; begin < C.cols; begin += width) {
    const Range cols{begin, std::min(width, C.cols - begin)};
    const MatrixView<T> Z(memory.get(), cols.size, C.rows, stride);
    cblas::gemm(Op::adjoint, Op::none, static_cast<cblas::Int>(Z.rows), static_cast<cblas::Int>(Z.cols),
                inner, T(1), B.column(begin), ldb, A.data, lda, T(0), Z.data,
                static_cast<cblas::Int>(stride));
    add_adjoint<T>(alpha, Z, beta, C.col_block(cols));
  }
  return true;
}

/// Makes one BLAS call, or goes by way of the transposed product. The inner dimension is positive, and C is
/// not empty.
template <Scalar T>
void call_blas(Op op_a, Op op_b, Index k, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
               MatrixView<T> C, Index limit, bool transposed) {
  const cblas::Int lda = leading_dimension(A, limit);
  if (C.cols == 1 && op_b == Op::none) {
    // Some releases of OpenBLAS compute 0·NaN for a zero β (OpenBLAS issue 929).
    if (beta == T(0)) scale(beta, C);
    cblas::gemv(op_a, narrowed(A.rows, limit), narrowed(A.cols, limit), alpha, A.data, lda, B.data, beta,
                C.data);
    return;
  }
  const cblas::Int ldb = leading_dimension(B, limit), inner = narrowed(k, limit);
  if (transposed && adjoint_gemm_transposed(inner, alpha, A, B, beta, C, lda, ldb)) return;
  cblas::gemm(op_a, op_b, narrowed(C.rows, limit), narrowed(C.cols, limit), inner, alpha, A.data, lda, B.data,
              ldb, beta, C.data, leading_dimension(C, limit));
}

/// C ← α op_a(A) op_b(B) + β C as a sum of products with parts of a long inner dimension, for a small C whose
/// rows and columns would not make threads busy. Returns false, leaving C unchanged, if there is no memory
/// for that.
template <Scalar T>
bool gemm_by_inner_parts(Op op_a, Op op_b, Index k, T alpha, MatrixView<const T> A, MatrixView<const T> B,
                         T beta, MatrixView<T> C, Index limit) {
  constexpr int parts = 8;
  const std::unique_ptr<T[]> memory(new (std::nothrow) T[at(parts * C.size())]);
  if (memory == nullptr) return false;
  const auto product = [&](Index part) {
    return MatrixView<T>(memory.get() + part * C.size(), C.rows, C.cols);
  };
  for_each_of(parts, product_flops<T>(C.rows, k, C.cols), [&](Index part) {
    const Range inner = balanced_part(k, parts, part), rows{0, C.rows}, cols{0, C.cols};
    call_blas(op_a, op_b, inner.size, T(1), stored_block(op_a, A, rows, inner),
              stored_block(op_b, B, inner, cols), T(0), product(part), limit, false);
  });
  const HostKernels<T> kernels;
  for (Index part = 1; part < parts; ++part) kernels.add(T(1), product(part), T(1), product(0));
  kernels.add(alpha, product(0), beta, C);
  return true;
}

/// Each thread makes one call for its rows or columns of C, whatever are more. These begin at multiples of
/// what BLAS computes at once, so that an element's bits do not depend on the cut.
template <Scalar T>
void call_blas_in_threads(Op op_a, Op op_b, Index k, T alpha, MatrixView<const T> A, MatrixView<const T> B,
                          T beta, MatrixView<T> C, Index limit) {
  constexpr Index unit = 64, small = 2 * unit, long_inner = 1 << 15;
  if (alpha != T(0) && C.rows <= small && C.cols <= small && k >= long_inner &&
      gemm_by_inner_parts(op_a, op_b, k, alpha, A, B, beta, C, limit))
    return;
  const bool transposed = alpha != T(0) && op_a == Op::adjoint && op_b == Op::none &&
                          adjoint_is_faster_transposed(C.rows, C.cols, k);
  const bool by_rows = !transposed && C.rows >= C.cols;
  const int threads = threads_for(product_flops<T>(C.rows, k, C.cols));
  for_ranges(by_rows ? C.rows : C.cols, unit, threads, [&](int, Range range) {
    const Range rows = by_rows ? range : Range{0, C.rows}, cols = by_rows ? Range{0, C.cols} : range;
    call_blas(op_a, op_b, k, alpha, stored_block(op_a, A, rows, {0, k}), stored_block(op_b, B, {0, k}, cols),
              beta, C.block(rows, cols), limit, transposed);
  });
}

}  // namespace

Index blas_limit() { return std::numeric_limits<cblas::Int>::max(); }

template <Scalar T>
void host_gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
               MatrixView<T> C, Index limit) {
  const Index inner = op_a == Op::none ? A.cols : A.rows;
  if (C.empty()) return;
  if (inner == 0) return scale(beta, C);
  const auto next = [limit](Index begin, Index end) { return Range{begin, std::min(limit, end - begin)}; };
  for (Range j = next(0, C.cols); j.size > 0; j = next(j.end(), C.cols)) {
    for (Range i = next(0, C.rows); i.size > 0; i = next(i.end(), C.rows)) {
      for (Range k = next(0, inner); k.size > 0; k = next(k.end(), inner)) {
        call_blas_in_threads(op_a, op_b, k.size, alpha, stored_block(op_a, A, i, k),
                             stored_block(op_b, B, k, j), k.begin == 0 ? beta : T(1), C.block(i, j), limit);
      }
    }
  }
}

#define GRIDLOPS_INSTANTIATE(T) \
  template void host_gemm(Op, Op, T, MatrixView<const T>, MatrixView<const T>, T, MatrixView<T>, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
