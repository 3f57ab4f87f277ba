// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/band.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

// Operators on arrays of several dimensions (Space::dims), which may be cut along any of them, in any parts.
// Functions that make them are not collective. They throw ShapeError or UsageError, on all ranks and without
// communicating, if a dimension does not exist or sizes do not fit. A product that needs elements of other
// ranks fetches them in one all_to_all_v, which travels while the others are computed.

/// The product with a banded matrix along one dimension of the arrays of a space: a derivative (see
/// Derivative), a convolution. The matrix is as large as the dimension.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> band_operator(const Space& space, int dim, const Band& band);

/// One term of a Laplacian.
struct LaplacianTerm {
  int dim = 0;
  double weight = 1;
  double sampling = 1;
};
/// Σ weight · ∂²/∂dim² over the terms; the derivatives are second_derivative() with their own sampling.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> laplacian(const Space& space, const std::vector<LaplacianTerm>& terms,
                                         Derivative::Kind kind = Derivative::Kind::centered,
                                         bool edge = false);

/// [∂/∂dim₀; ∂/∂dim₁; …], a stack of first_derivative() along all dimensions, each with its sampling.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> gradient(const Space& space, const std::vector<double>& sampling,
                                        Derivative::Kind kind = Derivative::Kind::centered,
                                        bool edge = false);

/// The space of the samples of arrays with these indices along one dimension, increasing. Every rank keeps
/// those that it has, so its parts of that dimension may differ in size by more than one.
GRIDLOPS_EXPORT Space restricted_space(const Space& space, int dim, const std::vector<Index>& indices);
/// From arrays to those samples. The adjoint puts them back among zeros. Nothing moves.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> restriction(const Space& space, int dim, const std::vector<Index>& indices);

/// How many cells of its neighbours a block of an array gets, before and behind it along each dimension. They
/// may be more than a neighbour has, and are then those of the ranks behind it.
struct HaloWidths {
  std::vector<Index> before, behind;  ///< one ≥ 0 for each dimension
  /// Whether blocks at the ends of the array get cells of zeros there, or none.
  bool beyond_array = true;
};

/// The space of blocks with these halos.
GRIDLOPS_EXPORT Space halo_space(const Space& space, const HaloWidths& widths);
/// From blocks to blocks with halos, corners included. The adjoint sums what the copies of a cell hold.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> halo(const Space& space, const HaloWidths& widths);
/// From blocks with halos to blocks, without the halos: crop · halo = I.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> crop(const Space& space, const HaloWidths& widths);

}  // namespace gridlops
