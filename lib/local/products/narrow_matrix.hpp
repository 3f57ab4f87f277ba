// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "gridlops/base/types.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// How a real number is stored.
enum class Precision { bfloat16, float32, float64 };

/// The upper half of a float.
using Bfloat16 = std::uint16_t;

inline constexpr std::size_t precisions = 3;

constexpr Index bytes_of(Precision precision) { return Index{2} << static_cast<int>(precision); }

/// How far rounding to nearest moves a number at most, relative to the number.
constexpr double roundoff(Precision precision) {
  return precision == Precision::bfloat16 ? 0x1p-8 : precision == Precision::float32 ? 0x1p-24 : 0x1p-53;
}

/// That of the elements of T.
template <Scalar T>
inline constexpr Precision own_precision = sizeof(Real<T>) == 4 ? Precision::float32 : Precision::float64;

/// A matrix of T without gaps, whose real numbers are stored in a precision that is not above T's. The bytes
/// are in the memory of a backend: column by column, or strip by strip of some of its real rows, each column
/// by column. Processors read long runs of strips, where columns would be read in pieces.
template <Scalar T>
struct NarrowMatrix {
  const std::byte* data = nullptr;
  Index rows = 0, cols = 0;
  Precision precision = own_precision<T>;

  static constexpr Index parts = is_complex<T> ? 2 : 1;
  /// Of matrices side by side, each meets rows of X or Y (Kernels::narrow_gemm()) from a multiple of this on.
  static constexpr Index alignment = 64 / Index{sizeof(Real<T>)};
  static constexpr Index aligned(Index row) { return (row + alignment - 1) / alignment * alignment; }

  constexpr Index numbers() const { return parts * rows * cols; }
  constexpr Index bytes() const { return numbers() * bytes_of(precision); }
  /// Of a matrix in columns.
  constexpr NarrowMatrix columns(Range range) const {
    return {data + range.begin * rows * parts * bytes_of(precision), rows, range.size, precision};
  }
};

/// Copies A, rounding to nearest, without gaps. Both are in host memory. Numbers that a precision cannot hold
/// become infinite.
template <Scalar T>
void narrow(MatrixView<const T> A, Precision precision, std::byte* to);

/// Copies A, which is in host memory, in columns, to the elements of T. Exact.
template <Scalar T>
void widen(const NarrowMatrix<T>& A, T* to);

struct KernelSet;

/// Copies columns to those from `first` on of a matrix with `cols` columns of the same rows and precision, in
/// strips of this many real rows. Both are in host memory.
template <Scalar T>
void put_narrow(const NarrowMatrix<T>& columns, Index strip, Index first, Index cols, std::byte* to);

/// Kernels::narrow_strip() on the host.
template <Scalar T>
Index narrow_strip(Index rows, const KernelSet& set);

/// Kernels::narrow_gemm() in host memory, where A has at least one matrix. The processor must have the
/// instruction set.
template <Scalar T>
void narrow_gemm(Op op, T alpha, std::span<const NarrowMatrix<T>> A, MatrixView<const T> X, T beta,
                 MatrixView<T> Y, const KernelSet& set);

}  // namespace gridlops
