// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/band.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// Operators on arrays of several dimensions (Space::dims), which may be cut along any of them, into any
// parts. The functions that make these operators are not collective. They throw ShapeError or UsageError, on
// all ranks and without communicating, if a dimension does not exist or sizes do not fit. A product that
// needs elements of other ranks fetches them in one all_to_all_v, and meanwhile computes the other elements.

/// The product with a banded matrix along one dimension of the arrays of a space, for example a derivative
/// (see Derivative) or a convolution. The size of the matrix is that of the dimension.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> band_operator(const Space& space, int dim, const Band& band);

/// A band for each line along one dimension of an array. Lines are numbered in the C order of the array's
/// other dims.
struct LineBands {
  Index lower = 0, upper = 0;  ///< the most that any band has, the same on all ranks
  std::function<Band(Index line)> of;
};
/// Bands where each line has a matrix of its own, such as a wavelet for each trace, or a filter for each
/// trace and sample. Each rank calls the function for its own lines only, perhaps twice for one; what it
/// throws is thrown on this rank only, as is a ShapeError for a band of another size or a larger width. Rows
/// that are alike in all lines of a rank share their weights in each line: with a convolution() the operator
/// keeps lower + 1 + upper weights for each line, otherwise as many for each element of this rank's block. It
/// keeps them twice, for A and for Aᴴ, and throws OutOfMemory on this rank only. Without a function the
/// operator is a plan, like that of a planned_matrix(), where each line has a convolution().
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> band_operator(const Space& space, int dim, const LineBands& bands);

/// One term of a Laplacian.
struct LaplacianTerm {
  int dim = 0;
  double weight = 1;
  double sampling = 1;
};
/// Σ weight · ∂²/∂dim² over the terms. Each derivative is a second_derivative() with its term's sampling. On
/// the host all terms are added in one pass over the array.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> laplacian(const Space& space, const std::vector<LaplacianTerm>& terms,
                                         Derivative::Kind kind = Derivative::Kind::centered,
                                         bool edge = false);

/// [∂/∂dim₀; ∂/∂dim₁; …], a stack of first_derivative() along all dimensions, each with its own sampling. Its
/// data are arrays with the derivatives along a new first dimension, as stack_spaces() says.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> gradient(const Space& space, const std::vector<double>& sampling,
                                        Derivative::Kind kind = Derivative::Kind::centered,
                                        bool edge = false);

/// The space of arrays restricted to these indices, in increasing order, along one dimension. Every rank
/// keeps the samples that it holds, so the parts of that dimension may differ in size by more than one.
GRIDLOPS_EXPORT Space restricted_space(const Space& space, int dim, const std::vector<Index>& indices);
/// Maps arrays to those samples. The adjoint puts the samples back and fills the rest with zeros. Moves no
/// data.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> restriction(const Space& space, int dim, const std::vector<Index>& indices);

/// How the value y at position p, counted in samples, is computed from the samples x, with k = ⌊p⌋:
///   linear   y = (1 − w) xₖ + w xₖ₊₁ with w = p − k
///   sinc     y = Σⱼ sin(π(p − j)) / (π(p − j)) xⱼ over all samples
enum class Interpolation { linear, sinc };

/// The space of arrays with samples at these positions along one dimension, in increasing order, at least 0
/// and at most that of the last sample. Each rank has those from its own first sample up to the next rank's,
/// as in restricted_space().
GRIDLOPS_EXPORT Space interpolated_space(const Space& space, int dim, const std::vector<double>& positions);
/// Maps arrays to those values. Along a cut dimension, linear interpolation fetches at most one sample from
/// another rank. sinc is a matrix_along() of positions × samples, and redistributes before and after it.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> interpolation(const Space& space, int dim,
                                             const std::vector<double>& positions,
                                             Interpolation kind = Interpolation::linear);

/// The product with a dense matrix along one dimension of n elements: y₍…ᵢ…₎ = Σⱼ aᵢⱼ x₍…ⱼ…₎. The m × n
/// matrix is in host memory and the same on all ranks; the operator copies it. If the dimension is not cut,
/// nothing moves, and the range is cut as the domain. Otherwise the array is first redistributed, and cut
/// along the longest of its other dimensions, as is the range. If it has no other, every rank gets the whole
/// array, and the range is cut into balanced parts.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> matrix_along(const Space& space, int dim, MatrixView<const T> matrix);

/// How many neighbouring cells a block of an array gets before and behind it along each dimension. A width
/// may exceed the neighbour's block; the remaining cells then come from the ranks beyond it.
struct HaloWidths {
  std::vector<Index> before, behind;  ///< one per dimension, ≥ 0
  /// Whether blocks at the ends of the array get cells of zeros beyond the array, or no cells there.
  bool beyond_array = true;
};

/// The space of blocks with these halos.
GRIDLOPS_EXPORT Space halo_space(const Space& space, const HaloWidths& widths);
/// Maps blocks to blocks with halos, including corners. The adjoint sums all copies of a cell.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> halo(const Space& space, const HaloWidths& widths);
/// Maps blocks with halos to blocks without: crop · halo = I.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> crop(const Space& space, const HaloWidths& widths);

}  // namespace gridlops
