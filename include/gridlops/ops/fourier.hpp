// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <concepts>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// Discrete Fourier transforms along dimensions of the arrays of a space. They transform all right-hand sides
// at once. Along one dimension they move no data, and the dimension must not be cut: if it is, first
// redistribute the array with identity() so that the lines along it are whole. The functions that make these
// operators are not collective. They throw ShapeError or UsageError, on all ranks and without communicating.
//
// A line of any length n takes O(n log n) operations; lengths with the prime factors 2, 3 and 5 alone are the
// fastest. fft_library() names the library of the host; on a GPU it is cuFFT. On the host, the first
// application takes memory for up to 16 lines. On a GPU, it takes memory for two copies of one column and
// some more for cuFFT, and each column takes one execution of a plan.

/// The scale s of a transform: 1, 1/n or 1/√n. With 1/√n the transform is unitary.
enum class FourierNorm { none, by_n, ortho };

/// The indices of time 0 and of frequency 0, taken modulo n, and the scale. For a time axis with its origin
/// in the middle, time_zero is n/2 (NumPy's ifftshift before a transform). For frequencies in increasing
/// order, frequency_zero is n/2 (fftshift after it).
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
///
///   y_k = s_k Σ_i exp(−2πi (i−c) k/n) x_i,    s_k² = 2/n, but 1/n for k = 0 and for 2k = n,
///
/// along dimension `dim` of n ≥ 1 samples, where c is time_zero. In the range the dimension has `frequencies`
/// ≤ n/2 + 1 elements (0: all of them), and a new last dimension of 2 holds the real and imaginary parts (see
/// paired_space()). These scales preserve norms: ‖F x‖ = ‖x‖ for all x that have no other frequencies. F Fᵀ
/// is the identity except for the imaginary parts of frequencies 0 and n/2, which F sets to zero.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> real_fourier(const Space& space, int dim, Index frequencies = 0,
                                            Index time_zero = 0);

/// One of several dimensions along which an array is transformed. It may be cut.
struct FourierAxis {
  int dim = 0;
  Index length = 0;  ///< of the transform, which gets zeros behind the samples; 0: as many as there are
  Index time_zero = 0, frequency_zero = 0;  ///< as in FourierOptions, taken modulo the length
};

/// The product of transforms along these dimensions, each with the scale that `norm` gives its length. Where
/// a dimension is cut, the array is redistributed and cut along another one, once if a single dimension was
/// cut. The range is cut as the last transform leaves it. Also throws ShapeError if an array of one dimension
/// is cut.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<std::complex<R>> fourier(const Space& space, std::vector<FourierAxis> axes,
                                                     FourierNorm norm = FourierNorm::ortho);

/// Transforms real arrays to pairs of numbers: a real transform along the last of these dimensions, of which
/// the range has the frequencies 0 … n/2, and complex ones along the others. Frequencies of the last
/// dimension that stand for two have the additional factor √2, so that with FourierNorm::ortho norms are
/// preserved. The frequency_zero of the last dimension must be 0. The space has at most four dimensions.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> real_fourier(const Space& space, std::vector<FourierAxis> axes,
                                            FourierNorm norm = FourierNorm::ortho);

/// The convolution with a real filter along one dimension, as defined by convolution() in band.hpp. It pads
/// the array with zeros and transforms at least n + filter samples: O(n log n) operations per line instead of
/// O(n · filter). It takes memory for three arrays and a spectrum for each right-hand side. The space has at
/// most four dimensions. Throws UsageError unless the filter has a sample number `centre`, and OutOfMemory on
/// this rank only.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> fourier_convolution(const Space& space, int dim,
                                                   const std::vector<double>& filter, Index centre);

/// The space of real matrices whose rows are alternately the real and imaginary parts of the rows of complex
/// matrices in `space`; arrays get a last dimension of 2. Memory layout and norms are the same for both.
GRIDLOPS_EXPORT Space paired_space(const Space& space);

/// A matrix of pairs in the memory of X, which is a matrix in `space`. The stride may exceed the number of
/// rows.
template <std::floating_point R>
GRIDLOPS_EXPORT DistMatrix<R> pairs_of(const Space& space, DistMatrix<std::complex<R>>& X);

/// A complex operator as a real one on pairs. Its adjoint corresponds to that of A: the inner product of
/// pairs is Re⟨Ax, y⟩.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> on_pairs(OperatorPtr<std::complex<R>> A);

}  // namespace gridlops
