// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <numbers>

#include "gridlops/local/backend.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// The lines of a block, which a transform takes from n samples to the first `frequencies` frequencies: y_k =
/// s_k Σ_i exp(−2πi (i−c)(k−d)/n) x_i. There are `inner` neighbouring lines in each of `outer` slices.
struct FourierLines {
  Index outer = 1, inner = 1;
  Index samples = 0, frequencies = 0;
  Index time_zero = 0, frequency_zero = 0;  // c and d, in 0 … n − 1
  double scale = 1;                         // s_0
  bool one_sided = false;                   // whether s_k also accounts for the frequency n − k

  double weight(Index k) const {
    return one_sided && k > 0 && 2 * k != samples ? scale * std::numbers::sqrt2 : scale;
  }
};

/// A transform of the blocks of one rank, in the memory of a backend. Lines of T become lines of complex
/// numbers, stored as pairs if T is real. See Kernels for order and overlap. After construction it allocates
/// nothing.
template <Scalar T>
class LineTransform {
 public:
  virtual ~LineTransform() = default;
  /// Y ← α F X + β Y.
  virtual void forward(T alpha, MatrixView<const T> X, T beta, MatrixView<T> Y) = 0;
  /// X ← α Fᴴ Y + β X.
  virtual void adjoint(T alpha, MatrixView<const T> Y, T beta, MatrixView<T> X) = 0;
};

/// The transform for host memory, by FastFourier. Allocates in the memory of this backend. Throws
/// OutOfMemory, and errors of the library that makes the plans, on this rank alone.
template <Scalar T>
std::unique_ptr<LineTransform<T>> make_host_transform(const std::shared_ptr<Backend>& backend,
                                                      const FourierLines& lines);

}  // namespace gridlops
