// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/kernels/gpu_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "cuda/device_context.hpp"
#include "cuda/kernels/kernel_bodies.hpp"
#include "cuda/kernels/kernels.hpp"
#include "cuda/on_device.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::cuda {

namespace {

/// A block without gaps as a single column, which spreads its work evenly over threads.
template <class T>
MatrixView<T> as_column(MatrixView<T> X) {
  return {X.data, X.size(), 1};
}

cublasOperation_t operation(Op op) {
  switch (op) {
    case Op::none:
      return CUBLAS_OP_N;
    case Op::transpose:
      return CUBLAS_OP_T;
    case Op::adjoint:
      break;
  }
  return CUBLAS_OP_C;
}

/// The arguments of `count` products of blocks, each `step` elements behind the one before.
template <Scalar T>
struct Gemm {
  cublasOperation_t op_a, op_b;
  Index m, n, k;
  T alpha;
  const T* A;
  Index lda, step_A;
  const T* B;
  Index ldb, step_B;
  T beta;
  T* C;
  Index ldc, step_C, count;
};

/// Calls `one` if there is one product, or else `many`, with the scalars and pointers as cuBLAS has them.
template <class V, Scalar T, class One, class Many>
void call_blas(cublasHandle_t handle, const Gemm<T>& g, const char* name_of_one, const One& one,
               const char* name_of_many, const Many& many) {
  const auto* const alpha = reinterpret_cast<const V*>(&g.alpha);
  const auto* const beta = reinterpret_cast<const V*>(&g.beta);
  const auto* const A = reinterpret_cast<const V*>(g.A);
  const auto* const B = reinterpret_cast<const V*>(g.B);
  auto* const C = reinterpret_cast<V*>(g.C);
  if (g.count == 1) {
    check(one(handle, g.op_a, g.op_b, g.m, g.n, g.k, alpha, A, g.lda, B, g.ldb, beta, C, g.ldc), name_of_one);
  } else {
    check(many(handle, g.op_a, g.op_b, g.m, g.n, g.k, alpha, A, g.lda, g.step_A, B, g.ldb, g.step_B, beta, C,
               g.ldc, g.step_C, g.count),
          name_of_many);
  }
}

void call_blas(cublasHandle_t handle, const Gemm<float>& g) {
  call_blas<float>(handle, g, "cublasSgemm_64", cublasSgemm_64, "cublasSgemmStridedBatched_64",
                   cublasSgemmStridedBatched_64);
}
void call_blas(cublasHandle_t handle, const Gemm<double>& g) {
  call_blas<double>(handle, g, "cublasDgemm_64", cublasDgemm_64, "cublasDgemmStridedBatched_64",
                    cublasDgemmStridedBatched_64);
}
void call_blas(cublasHandle_t handle, const Gemm<std::complex<float>>& g) {
  call_blas<cuComplex>(handle, g, "cublasCgemm_64", cublasCgemm_64, "cublasCgemmStridedBatched_64",
                       cublasCgemmStridedBatched_64);
}
void call_blas(cublasHandle_t handle, const Gemm<std::complex<double>>& g) {
  call_blas<cuDoubleComplex>(handle, g, "cublasZgemm_64", cublasZgemm_64, "cublasZgemmStridedBatched_64",
                             cublasZgemmStridedBatched_64);
}

template <class T>
Index leading_dimension(MatrixView<T> A) {
  return std::max<Index>(1, A.cols <= 1 ? A.rows : A.stride);
}

}  // namespace

void* StreamMemory::reserve(Index bytes) {
  if (bytes <= size_) return data_;
  release();
  data_ = context_.memory().allocate(bytes, stream_);
  require<OutOfMemory>(data_ != nullptr, "the GPU has no ", bytes,
                       " bytes left for intermediate results; use more GPUs or fewer right-hand sides at a "
                       "time");
  size_ = bytes;
  return data_;
}

unsigned* KernelEnvironment::tickets(Index count) {
  const Index known = std::exchange(zeros_, 0);  // none, if this throws
  auto* const all = static_cast<unsigned*>(tickets_.reserve(count * Index{sizeof(unsigned)}));
  if (count > known) {
    context.make_current();
    check(cudaMemsetAsync(all, 0, static_cast<std::size_t>(count) * sizeof(unsigned), context.compute()),
          "cudaMemsetAsync");
  }
  zeros_ = std::max(count, known);
  return all;
}

void StreamMemory::release() noexcept {
  context_.memory().release(data_, stream_);
  data_ = nullptr;
  size_ = 0;
}

template <Scalar T>
void CudaKernels<T>::gemm(Op op_a, Op op_b, T alpha, MatrixView<const T> A, MatrixView<const T> B, T beta,
                          MatrixView<T> C) const {
  gemm_batched(1, op_a, op_b, alpha, {A}, {B}, beta, {C});
}

template <Scalar T>
void CudaKernels<T>::gemm_batched(Index count, Op op_a, Op op_b, T alpha, MatrixBatch<const T> A,
                                  MatrixBatch<const T> B, T beta, MatrixBatch<T> C) const {
  const Index inner = op_a == Op::none ? A.first.cols : A.first.rows;
  if (C.first.empty() || count == 0) return;
  if (inner == 0) {
    for (Index k = 0; k < count; ++k) beta == T(0) ? fill(T(0), C[k]) : add(beta, C[k], T(0), C[k]);
    return;
  }
  environment_.context.make_current();
  const StreamRegion region(environment_.context.timeline(), "gemm");
  call_blas(environment_.blas,
            Gemm<T>{operation(op_a), operation(op_b), C.first.rows, C.first.cols, inner, alpha, A.first.data,
                    leading_dimension(A.first), A.step, B.first.data, leading_dimension(B.first), B.step,
                    beta, C.first.data, leading_dimension(C.first), C.step, count});
  ++environment_.launches;
}

template <Scalar T>
void CudaKernels<T>::copy(MatrixView<const T> X, MatrixView<T> Y) const {
  if (X.contiguous() && Y.contiguous()) X = as_column(X), Y = as_column(Y);
  begun(Launch<DeviceScalar<T>>::copy(stream(), on_device(X), on_device(Y)), "the kernel copy");
}

namespace {
/// How many elements of a narrow matrix are widened at a time, but at least one column.
constexpr Index widened_elements = Index{1} << 22;
}  // namespace

template <Scalar T>
void CudaKernels<T>::reserve_narrow_gemm() const {
  environment_.widened.reserve(widened_elements * Index{sizeof(T)});
}

// Columns, as gemm() reads them.
template <Scalar T>
Index CudaKernels<T>::narrow_strip(Index rows) const {
  return NarrowMatrix<T>::parts * rows;
}

template <Scalar T>
void CudaKernels<T>::narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X,
                                 T beta, MatrixView<T> Y) const {
  Index row = 0;  // of X or Y, where the next columns of A belong
  const auto multiply = [&](MatrixView<const T> columns) {
    const Range rows{row, columns.cols};
    if (op == Op::none) {
      gemm(op, Op::none, alpha, columns, X.row_block(rows), beta, Y);
      beta = T(1);
    } else {
      gemm(op, Op::none, alpha, columns, X, beta, Y.row_block(rows));
    }
    row += columns.cols;
  };
  for (const NarrowMatrix<T>& matrix : A) {
    if (matrix.precision == own_precision<T>) {
      multiply({reinterpret_cast<const T*>(matrix.data), matrix.rows, matrix.cols});
    } else if (matrix.rows == 0) {
      multiply({nullptr, 0, matrix.cols});
    } else if (matrix.cols > 0) {
      const Index at_once = std::clamp<Index>(widened_elements / matrix.rows, 1, matrix.cols);
      auto* const wide =
          static_cast<T*>(environment_.widened.reserve(matrix.rows * at_once * Index{sizeof(T)}));
      for (Index begin = 0; begin < matrix.cols; begin += at_once) {
        const NarrowMatrix<T> part = matrix.columns({begin, std::min(at_once, matrix.cols - begin)});
        begun(Launch<DeviceScalar<T>>::widen(stream(), part.numbers(), part.precision, part.data,
                                             on_device(wide)),
              "the kernel widen");
        multiply({wide, part.rows, part.cols});
      }
    }
    row = NarrowMatrix<T>::aligned(row);
  }
  if (op == Op::none && row == 0) multiply({nullptr, Y.rows, 0});
}

template <Scalar T>
void CudaKernels<T>::fill(T value, MatrixView<T> X) const {
  if (X.contiguous()) X = as_column(X);
  begun(Launch<DeviceScalar<T>>::fill(stream(), scalar(value), on_device(X)), "the kernel fill");
}

template <Scalar T>
void CudaKernels<T>::add(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) const {
  if (X.contiguous() && Y.contiguous()) X = as_column(X), Y = as_column(Y);
  begun(Launch<DeviceScalar<T>>::add(stream(), scalar(alpha), on_device(X), scalar(beta), on_device(Y)),
        "the kernel add");
}

template <Scalar T>
void CudaKernels<T>::diagonal_multiply(T alpha, const T* d, bool conjugate_d, MatrixView<const T> X, T beta,
                                       MatrixView<T> Y) const {
  begun(Launch<DeviceScalar<T>>::diagonal_multiply(stream(), scalar(alpha), on_device(d), conjugate_d,
                                                   on_device(X), scalar(beta), on_device(Y)),
        "the kernel diagonal_multiply");
}

/// Sums on their way to the host. Kernels write them to its page-locked memory, which shows each number whole
/// (CUDA C++ Programming Guide, "Mapped Memory"). So the host sees them sooner than a copy, or a kernel's
/// end.
class ArrivingSums {
 public:
  /// Room for this many pairs of doubles. Numbers of one place take whole pairs. Throws OutOfMemory on this
  /// rank alone.
  ArrivingSums(DeviceContext& context, Index pairs)
      : context_(context), block_(context.pinned().take(pairs * Index{2 * sizeof(double)})) {}

  /// The place of the next numbers.
  double* place_of(Index numbers) {
    double* const place = reinterpret_cast<double*>(bits() + end_);
    std::fill_n(bits() + end_, numbers, not_there);
    end_ += numbers;
    if (end_ % 2 != 0) bits()[end_++] = 0;
    return place;
  }
  /// Waits for all numbers, once the kernels that write them are launched.
  void wait() {
    PooledEvent end = context_.events().record(context_.compute());
    const cudaEvent_t event = end.get();
    block_.used_until(std::move(end));
    context_.wait(event, [this] { return are_there(); });
  }

 private:
  /// A signalling NaN, where arithmetic makes quiet ones. The largest of a column may be this very one: then
  /// the wait ends with the kernel.
  static constexpr std::uint64_t not_there = 0x7ff0'5eed'0f90'71deU;
  std::uint64_t* bits() const { return reinterpret_cast<std::uint64_t*>(block_.data()); }
  bool are_there() {
    while (seen_ < end_ && std::atomic_ref(bits()[seen_]).load(std::memory_order_acquire) != not_there)
      ++seen_;
    return seen_ == end_;
  }

  DeviceContext& context_;
  PinnedBlock block_;
  Index end_ = 0, seen_ = 0;
};

template <Scalar T>
void CudaKernels<T>::column_sums(std::span<const ColumnTerm<T>> terms) const {
  using Sums = SumLaunch<DeviceScalar<T>>;
  Index columns = 0, partial = 0, tickets = 0;  // partial sums of two doubles each
  for (const ColumnTerm<T>& term : terms) {
    columns += term.X.cols;
    if (shares_of(term.X.rows) == 1) continue;
    partial += shares_of(term.X.rows) * term.X.cols;
    tickets += term.X.cols;
  }
  if (columns == 0) return;
  auto* free_partial = static_cast<std::complex<double>*>(
      environment_.partial_sums.reserve(partial * Index{sizeof(std::complex<double>)}));
  unsigned* free_tickets = environment_.tickets(tickets);
  // A complex dot takes a pair, and the sums of a term whole pairs.
  ArrivingSums arriving(environment_.context, columns + static_cast<Index>(terms.size()));
  const auto numbers = [](const ColumnTerm<T>& term) {
    return term.kind == SumKind::dots ? term.X.cols * Index{sizeof(Accumulator<T>) / sizeof(double)}
                                      : term.X.cols;
  };
  std::vector<const double*> places;
  places.reserve(terms.size());  // nothing may throw bad_alloc once a kernel writes to the host
  for (std::size_t begin = 0; begin < terms.size(); begin += Sums::most) {
    Sums sums;
    for (const ColumnTerm<T>& term :
         terms.subspan(begin, std::min<std::size_t>(Sums::most, terms.size() - begin))) {
      const Index shares = shares_of(term.X.rows);
      double* const place = arriving.place_of(numbers(term));
      places.push_back(place);
      sums.terms[sums.count++] = {
          term.kind, on_device(term.X), on_device(term.Y), term.p, shares, free_partial, place, free_tickets};
      if (shares == 1) continue;
      free_partial += shares * term.X.cols;
      free_tickets += term.X.cols;
    }
    begun(Launch<DeviceScalar<T>>::column_sums(stream(), sums), "the kernel column_sums");
  }
  arriving.wait();
  for (std::size_t k = 0; k < terms.size(); ++k) std::copy_n(places[k], numbers(terms[k]), terms[k].sums);
}

template <Scalar T>
void CudaKernels<T>::column_updates(std::span<const BlockUpdate<T>> updates) const {
  using Updates = UpdateLaunch<DeviceScalar<T>>;
  for (std::size_t first = 0; first < updates.size(); first += Updates::most) {
    const auto some = updates.subspan(first, std::min<std::size_t>(Updates::most, updates.size() - first));
    const Index width = Updates::most_factors / static_cast<Index>(some.size());
    Index cols = 0;
    for (const BlockUpdate<T>& update : some) cols = std::max(cols, update.Y.cols);
    Index begin = 0;
    do {
      Updates launch;
      launch.cols = std::min(width, cols - begin);
      for (const auto& [kind, alpha, X, Y] : some) {
        const Range here{std::min(begin, Y.cols), std::clamp<Index>(Y.cols - begin, 0, launch.cols)};
        std::copy_n(on_device(alpha) + here.begin, here.size, launch.factors + launch.count * launch.cols);
        launch.updates[launch.count++] = {kind, on_device(X.empty() ? X : X.col_block(here)),
                                          on_device(Y.col_block(here))};
        launch.rows = std::max(launch.rows, Y.rows);
      }
      begun(Launch<DeviceScalar<T>>::column_updates(stream(), launch), "the kernel column_updates");
      begin += width;
    } while (begin < cols);
  }
}

template <Scalar T>
void CudaKernels<T>::column_threshold(Threshold kind, const double* t, MatrixView<T> X) const {
  begun(Launch<DeviceScalar<T>>::column_threshold(stream(), kind, t, on_device(X)),
        "the kernel column_threshold", launches_for<double>(X.cols));
}

template <Scalar T>
void CudaKernels<T>::clip(double lower, double upper, MatrixView<T> X) const {
  begun(Launch<DeviceScalar<T>>::clip(stream(), lower, upper, on_device(X)), "the kernel clip");
}

#define GRIDLOPS_INSTANTIATE(T) template class CudaKernels<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::cuda
