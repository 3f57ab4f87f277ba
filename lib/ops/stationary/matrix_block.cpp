// SPDX-License-Identifier: BSD-3-Clause
#include "ops/stationary/matrix_block.hpp"

#include <algorithm>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/job_end.hpp"
#include "dist/matrix_checks.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/base/trace.hpp"
#include "local/products/packed_matrix.hpp"

namespace gridlops {

template <Scalar T>
void BlockProduct<T>::reserve(Index rows_of_X, Index rows_of_Y) const {
  if (!pads()) return;
  padded_X_.reserve(backend_, rows_of_X * group);
  padded_Y_.reserve(backend_, rows_of_Y * group);
}

template <Scalar T>
void BlockProduct<T>::multiply(Op op, T alpha, MatrixView<const T> A, MatrixView<const T> X, T beta,
                               MatrixView<T> Y) const {
  const TraceRegion region("local product");
  trace_flops(product_flops<T>(A.rows, A.cols, X.cols));
  const Kernels<T>& kernels = backend_->kernels<T>();
  if (!column_stable_) {
    kernels.gemm(op, Op::none, alpha, A, X, beta, Y);
    return;
  }
  if (!pads()) return few_columns_gemm(op, alpha, A, X, beta, Y, *kernel_choice().set, true);
  for (Index begin = 0; begin < X.cols; begin += group) {
    const Range columns{begin, std::min(group, X.cols - begin)};
    MatrixView<const T> X_group = X.col_block(columns);
    MatrixView<T> Y_group = Y.col_block(columns);
    const MatrixView<T> X_padded = padded_X_.matrix(X.rows, group);
    const MatrixView<T> Y_padded = padded_Y_.matrix(Y.rows, group);
    const MatrixView<T> Y_used = Y_padded.col_block({0, columns.size});
    kernels.copy(X_group, X_padded.col_block({0, columns.size}));
    kernels.fill(T(0), X_padded.col_block({columns.size, group - columns.size}));
    kernels.fill(T(0), Y_padded.col_block({columns.size, group - columns.size}));
    if (beta != T(0)) kernels.copy(Y_group, Y_used);
    kernels.gemm(op, Op::none, alpha, A, X_padded, beta, Y_padded);
    kernels.copy(Y_used, Y_group);
  }
}

template <Scalar T>
void MatrixBlock<T>::reserve(ProductKind kind, Index columns) {
  if (is_packed_) pack();
  const MatrixView<const T> A = matrix().local();
  if (kind != ProductKind::adjoint) product_.reserve(A.cols, A.rows);
  if (kind != ProductKind::forward) product_.reserve(A.rows, A.cols);
  const bool joins = kind == ProductKind::normal && packed_.empty() && !A.empty();
  if (joins) both_.reserve(backend(), A.rows * 2 * columns);
}

template <Scalar T>
void MatrixBlock<T>::pack() {
  const MatrixView<const T> A = matrix().local();
  if (!packed_.empty() || A.empty() || lacks_room_) return;
  const TraceRegion region("pack matrix");
  bool is_whole = true;
  const auto taken = [&](Index cols) {
    is_whole = false;
    A_.discard_local_columns(cols);
  };
  try {
    packed_ = PackedMatrix<T>(backend(), A, *kernel_choice().set, product_.column_stable(), taken, packing_);
  } catch (const OutOfMemory& error) {
    if (packing_ == Packing::planes || !is_whole) throw;
    lacks_room_ = true;
    return report(message("warning: A stays in columns, which products may read more slowly, as there is no ",
                          "room to pack it: ", error.what()));
  }
  if (!A_.is_callers()) A_.discard();
}

template <Scalar T>
void MatrixBlock<T>::renew_copies() {
  if (!packed_.empty()) packed_.copy(matrix().local());
}

template <Scalar T>
void MatrixBlock<T>::multiply(Planes planes, Op op, T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) {
  if (packed_.empty()) {
    product_.multiply(op, alpha, matrix().local(), X, beta, Y);
  } else {
    const TraceRegion region("local product");
    trace_flops(product_flops<T>(X.rows, Y.rows, X.cols));
    packed_.multiply(op, alpha, X, beta, Y, planes);
  }
}

template <Scalar T>
std::uint64_t MatrixBlock<T>::hash() const {
  const MatrixView<const T> A = matrix().local();
  if (packed_.empty()) return hash_of_block(matrix());
  std::vector<T> column(at(A.rows));
  std::uint64_t hash = 0;
  for (Index j = 0; j < A.cols; ++j) {
    packed_.read_column(j, column.data());
    hash = hash_of_column<T>(column, hash);
  }
  return hash;
}

template <Scalar T>
void MatrixBlock<T>::visit_rows(Planes planes, Op op, const typename LocalBlock<T>::UseRows& use) {
  if (op != Op::none) return visit_columns(planes, use);
  if (packed_.empty()) return use({0, rows()}, matrix().local());
  const TileOrder<T>& order = packed_.order();
  Buffer<T> elements(backend(), order.strip_rows(0).size * cols());
  for (Index strip = 0; strip < order.strips(); ++strip) {
    const Range range = order.strip_rows(strip);
    const MatrixView<T> slab = elements.matrix(range.size, cols());
    packed_.read_strip(strip, slab, planes);
    use(range, slab);
  }
}

/// Calls use() for the rows of Aᴴ.
template <Scalar T>
void MatrixBlock<T>::visit_columns(Planes planes, const typename LocalBlock<T>::UseRows& use) {
  const Index together = std::min(visited_columns(rows(), Index{sizeof(T)}), cols());
  Buffer<T> unpacked(backend(), packed_.empty() ? 0 : rows() * together),
      adjoint(backend(), together * rows());
  for (Index first = 0; first < cols(); first += together) {
    const Range range{first, std::min(together, cols() - first)};
    MatrixView<const T> columns = matrix().local().col_block(range);
    if (!packed_.empty()) {
      columns = unpacked.matrix(rows(), range.size);
      packed_.read_columns(first, unpacked.matrix(rows(), range.size), planes);
    }
    const MatrixView<T> slab = adjoint.matrix(range.size, rows());
    conjugate_transpose<T>(columns, slab);
    use(range, slab);
  }
}

template <Scalar T>
void MatrixBlock<T>::multiply_once(Planes planes, MatrixView<const T> P, MatrixView<const T> R,
                                   MatrixView<T> Q, MatrixView<T> W, const Completion& completed) {
  if (!packed_.empty()) {
    const TraceRegion region("local product");
    trace_flops(3 * product_flops<T>(Q.rows, W.rows, P.cols));
    return packed_.one_pass(P, R, Q, W.col_block({0, P.cols}), W.col_block({P.cols, P.cols}), completed,
                            planes);
  }
  const Kernels<T>& kernels = backend()->template kernels<T>();
  multiply(planes, Op::none, T(1), P, T(0), Q);
  this->complete(Q.rows, completed);
  if (matrix().local().empty()) return kernels.fill(T(0), W);
  const MatrixView<T> both = both_.matrix(Q.rows, W.cols);
  kernels.copy(R, both.col_block({0, R.cols}));
  kernels.copy(Q, both.col_block({R.cols, Q.cols}));
  multiply(planes, Op::adjoint, T(1), both, T(0), W);
}

void require_storage_possible(Storage storage, ScalarType type, MemorySpace memory) {
  const StorageRow& row = row_of(storage);
  if (!row.for_doubles) return;
  require<UsageError>(type == ScalarType::f64 || type == ScalarType::c128, "a matrix of ", name_of(type),
                      " cannot be stored as ", row.name,
                      ", which is for 64-bit numbers; take packed, or f64 or c128");
  require<UsageError>(memory == MemorySpace::host, row.name,
                      " are for matrices in host memory, and this one is on a GPU; take packed");
}

template <Scalar T>
Index block_bytes(Storage storage, Index rows, Index cols) {
  return storage == Storage::columns ? rows * cols * Index{sizeof(T)}
                                     : PackedMatrix<T>::bytes(rows, cols, *kernel_choice().set);
}

#define GRIDLOPS_INSTANTIATE(T)   \
  template class BlockProduct<T>; \
  template class MatrixBlock<T>;  \
  template Index block_bytes<T>(Storage, Index, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
