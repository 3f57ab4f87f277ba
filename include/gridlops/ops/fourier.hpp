// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <concepts>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// Discrete Fourier transforms along one dimension of the arrays of a space. The dimension must not be cut: an
// array that is cut along it is brought into another cut by identity(), the transform's lines then being
// whole. Nothing moves, and all right-hand sides are transformed at once. Functions that make these operators
// are not collective. They throw ShapeError or UsageError, on all ranks and without communicating.
//
// On the host a line takes O(n Σ p) operations for the prime factors p of n (KISS FFT), so that lengths with
// large ones are slow; on a GPU O(n log n) for any n (cuFFT). There the first application takes memory for
// two copies of one column and more for cuFFT, and each column takes one run of a plan.

/// How a transform is scaled: by s = 1, 1/n or 1/√n. With 1/√n it is unitary.
enum class FourierNorm { none, by_n, ortho };

/// Which indices time 0 and frequency 0 have, and the scale. Indices are taken modulo n. For an axis that is
/// ordered as time, its origin in the middle, time_zero is n/2 (NumPy's ifftshift before a transform); for
/// ordered frequencies frequency_zero is n/2 (fftshift after it).
struct FourierOptions {
  FourierNorm norm = FourierNorm::ortho;
  Index time_zero = 0;
  Index frequency_zero = 0;
};

/// y_k = s Σ_i exp(−2πi (i−c)(k−d)/n) x_i along dimension `dim` of n ≥ 1 samples, where c is time_zero and d
/// frequency_zero. Domain and range are this space. The adjoint is n s² times the inverse.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<std::complex<R>> fourier(const Space& space, int dim,
                                                     const FourierOptions& options = {});

/// The frequencies 0 … frequencies − 1 of real samples, as pairs of numbers:
///   y_k = s_k Σ_i exp(−2πi (i−c) k/n) x_i,    s_k² = 2/n, but 1/n for k = 0 and for 2k = n,
/// along dimension `dim` of n ≥ 1 samples, where c is time_zero. In the range the dimension has `frequencies`
/// ≤ n/2 + 1 elements (0: all of them), and after the last dimension there is one of 2 for real and imaginary
/// parts (see paired_space()). With these scales norms are kept: ‖F x‖ = ‖x‖ for all x that have no other
/// frequencies, and F Fᵀ is the identity but for the imaginary parts of frequencies 0 and n/2, which F makes
/// zero.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> real_fourier(const Space& space, int dim, Index frequencies = 0,
                                            Index time_zero = 0);

/// The convolution with a real filter along one dimension, as convolution() in band.hpp defines it, by
/// transforms of n + filter samples and more, zeros beside the array: O(n log n) operations a line instead of
/// O(n · filter). It takes memory for three arrays and a spectrum for each right-hand side. The space has at
/// most four dimensions. Throws UsageError unless the filter has a sample number `centre`, and OutOfMemory on
/// this rank alone.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> fourier_convolution(const Space& space, int dim,
                                                   const std::vector<double>& filter, Index centre);

/// The space of real matrices whose rows are the real and imaginary parts, in turn, of those of complex
/// matrices in `space`; arrays get a last dimension of 2. The memory of both is the same, and so are norms.
GRIDLOPS_EXPORT Space paired_space(const Space& space);

/// The matrix of pairs that lies in the memory of X, a matrix in `space`; columns may be further apart than
/// they are long.
template <std::floating_point R>
GRIDLOPS_EXPORT DistMatrix<R> pairs_of(const Space& space, DistMatrix<std::complex<R>>& X);

/// A complex operator as the real one between pairs. Its adjoint is that of A: Re⟨Ax, y⟩ is the inner product
/// of pairs.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> on_pairs(OperatorPtr<std::complex<R>> A);

}  // namespace gridlops
