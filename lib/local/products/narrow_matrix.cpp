// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/narrow_matrix.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/instantiate.hpp"
#include "local/host_kernels.hpp"
#include "local/products/kernel_set.hpp"
#include "local/products/workspace.hpp"

namespace gridlops {

namespace {

/// The upper half of the bits, rounded to nearest, ties to even.
std::uint16_t to_bfloat16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class Stored, class R, class Round>
void round_column(Index n, const R* from, std::byte* to, Round&& round) {
  for (Index i = 0; i < n; ++i) {
    const Stored stored = round(from[i]);
    std::memcpy(to + i * Index{sizeof stored}, &stored, sizeof stored);
  }
}

}  // namespace

template <Scalar T>
void narrow(MatrixView<const T> A, Precision precision, std::byte* to) {
  using R = Real<T>;
  const Index numbers = NarrowMatrix<T>::parts * A.rows;
  for (Index j = 0; j < A.cols; ++j, to += numbers * bytes_of(precision)) {
    const auto* const column = reinterpret_cast<const R*>(A.column(j));
    switch (precision) {
      case Precision::bfloat16:
        round_column<std::uint16_t>(numbers, column, to,
                                    [](R x) { return to_bfloat16(static_cast<float>(x)); });
        break;
      case Precision::float32:
        round_column<float>(numbers, column, to, [](R x) { return static_cast<float>(x); });
        break;
      case Precision::float64:
        round_column<double>(numbers, column, to, [](R x) { return static_cast<double>(x); });
    }
  }
}

template <Scalar T>
void widen(const NarrowMatrix<T>& A, T* to) {
  const RealKernels<Real<T>>& loops = kernel_choice().set->of<Real<T>>();
  auto* const numbers = reinterpret_cast<Real<T>*>(to);
  if (A.precision == own_precision<T>) {
    std::memcpy(to, A.data, static_cast<std::size_t>(A.bytes()));
  } else {
    const auto loop = A.precision == Precision::bfloat16 ? loops.widen_bfloat16 : loops.widen_float32;
    loop(A.numbers(), A.data, numbers);
  }
}

// A few columns at a time become elements of T in a cache.
template <Scalar T>
void HostKernels<T>::narrow_gemm(Op op, T alpha, const NarrowMatrix<T>& A, MatrixView<const T> X, T beta,
                                 MatrixView<T> Y) const {
  if (A.precision == own_precision<T> || A.rows * A.cols == 0)
    return gemm(op, Op::none, alpha, MatrixView<const T>(reinterpret_cast<const T*>(A.data), A.rows, A.cols),
                X, beta, Y);
  constexpr Index in_cache = Index{1} << 18;
  const Index at_once = std::clamp<Index>(in_cache / (A.rows * Index{sizeof(T)}), 1, A.cols);
  const Workspace<T> room(A.rows * at_once);
  for (Index begin = 0; begin < A.cols; begin += at_once) {
    const Range range{begin, std::min(at_once, A.cols - begin)};
    widen(A.columns(range), room.data());
    const MatrixView<const T> columns(room.data(), A.rows, range.size);
    if (op == Op::none) {
      gemm(op, Op::none, alpha, columns, X.row_block(range), begin == 0 ? beta : T(1), Y);
    } else {
      gemm(op, Op::none, alpha, columns, X, beta, Y.row_block(range));
    }
  }
}

#define GRIDLOPS_INSTANTIATE(T)                                                                    \
  template void narrow(MatrixView<const T>, Precision, std::byte*);                                \
  template void widen(const NarrowMatrix<T>&, T*);                                                 \
  template void HostKernels<T>::narrow_gemm(Op, T, const NarrowMatrix<T>&, MatrixView<const T>, T, \
                                            MatrixView<T>) const;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
