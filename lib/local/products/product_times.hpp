// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <optional>

#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "local/products/packed_matrix.hpp"

namespace gridlops {

/// The timed work with a rank's block: A X or Aᴴ Y by BLAS or by this library's kernels with A in columns,
/// the same with A packed, and both in one pass.
enum class Work { blas, blas_adjoint, own, own_adjoint, packed, packed_adjoint, one_pass };
inline constexpr std::size_t kinds_of_work = 7;
constexpr const char* name_of(Work work) {
  constexpr std::array<const char*, kinds_of_work> names{
      "A X, BLAS",   "A^H Y, BLAS",   "A X, own kernels", "A^H Y, own kernels",
      "A X, packed", "A^H Y, packed", "one pass"};
  return names[static_cast<std::size_t>(work)];
}

/// Seconds: the smallest and the second smallest of several repetitions.
struct Timing {
  double least = 0, second = 0;
};

/// The times of work with one element type on this machine, with columns[k] right-hand sides.
struct ProductTimes {
  static constexpr std::array<Index, 8> columns{1, 2, 4, 8, 16, 32, 64, 128};

  std::array<std::array<Timing, columns.size()>, kinds_of_work> times{};

  const Timing& of(Work work, std::size_t k) const { return times[static_cast<std::size_t>(work)][k]; }
  /// The median of second / least. Near 1 on an otherwise idle machine.
  double unsteadiness() const;
};

/// Makes measurements correct the choices of this process, or, without measurements, stops that. The choice
/// for a product must not change while an operator lives.
void use_product_times(ScalarType type, const std::optional<ProductTimes>& times);

// These return `usual`, the built-in choice for this many right-hand sides, or its opposite if that is
// clearly faster. Clearly faster means, in the measurements with the next fewer and the next more right-hand
// sides: its second time is a tenth shorter than the least time of the usual choice, whose two times agree to
// a tenth. Disturbances make times longer, and seldom twice as much, so they leave usual choices alone.
// Without measurements, or with more right-hand sides than measured, they return `usual`.

/// Whether this library's kernels, with A in columns, beat BLAS.
bool own_kernels_pay(bool usual, ScalarType type, Op op, Index columns);
/// Whether packing A beats columns, for equally many products with A and with Aᴴ.
bool packing_pays(bool usual, ScalarType type, Index columns);
/// Whether one pass over a packed A beats a product with A and one with Aᴴ.
bool one_pass_pays(bool usual, ScalarType type, Index columns);

/// Times work with its own matrices in host memory. Multiplies a block of about `bytes` with up to 16
/// right-hand sides, and a quarter of that block with more, because then computing takes the time.
template <Scalar T>
class ProductTimer {
 public:
  /// Throws OutOfMemory.
  explicit ProductTimer(Index bytes);

  /// The seconds of one repetition with ProductTimes::columns[k] right-hand sides.
  double seconds(Work work, std::size_t k) const;

 private:
  /// A in columns and packed.
  struct Block {
    MatrixView<const T> A;
    PackedMatrix<T> packed;
  };

  void run(Work work, const Block& block, Index columns) const;

  Buffer<T> A_, models_, data_;
  Block whole_, part_;
};

}  // namespace gridlops
