// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// The travel times of waves from the sources to the points of an image, and from there to the receivers.
/// Points are numbered in the C order of the image's dims. Times may be in any unit. They are ≥ 0, and
/// infinite if no wave arrives. The functions are called once for each table that a rank needs, and must be
/// the same on all ranks.
struct TravelTimes {
  std::function<double(Index source, Index point)> from_source;
  std::function<double(Index receiver, Index point)> to_receiver;
};

/// One coordinate per dimension of an image.
using Position = std::vector<double>;

/// The positions of the points of an image: origin + index · spacing along each dimension.
struct ImageAxes {
  Position origin, spacing;
};

/// Travel times along straight rays, at one velocity, to the points of an image of these sizes.
GRIDLOPS_EXPORT TravelTimes straight_rays(const std::vector<Index>& sizes, const ImageAxes& axes,
                                          std::vector<Position> sources, std::vector<Position> receivers,
                                          double velocity);
/// Travel times from the columns of two column-major tables: points × sources and points × receivers.
GRIDLOPS_EXPORT TravelTimes tabulated_times(Index points, std::vector<double> from_sources,
                                            std::vector<double> to_receivers);

struct Recording {
  double interval = 1;          ///< between samples, in the unit of the travel times; > 0
  std::vector<double> wavelet;  ///< emitted by the sources
  Index centre = 0;             ///< the sample of the wavelet that leaves at time 0
};

/// Kirchhoff demigration without amplitudes, whose adjoint is Kirchhoff migration (Bleistein, Cohen,
/// Stockwell: Mathematics of Multidimensional Seismic Imaging, Migration, and Inversion, 2001, ch. 5). The
/// trace of source s and receiver r is f ∗ y with the wavelet f and
///
///   y(k) = Σᵢ mᵢ ((1 − w) δ(k, ⌊t⌋) + w δ(k, ⌊t⌋ + 1)),   t = (t_s(i) + t_r(i)) / interval,   w = t − ⌊t⌋
///
/// over the points i of the image with 0 ≤ ⌊t⌋ < samples − 1. Not collective.
///
/// data: arrays of sources × receivers × samples, cut along sources, receivers or both; image: arrays of any
/// dims. If the image is uncut, demigration moves no data, and migration sums images over the parts of the
/// data. If it is cut, along the other grid dimension than the data, demigration sums traces over the
/// parts of the image. A rank's tables take 8 bytes for each pair of one of its points and one of its sources
/// or receivers. Throws ShapeError or UsageError on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> kirchhoff(const Space& data, const Space& image, TravelTimes times,
                                         const Recording& recording);

}  // namespace gridlops
