// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Fills in a number for each of these points of an image, which belongs to the ray between the point and one
/// source or receiver: values[k] is that of points[k]. Points are numbered in the C order of the image's
/// dims.
using AtPoints = std::function<void(Index end, std::span<const Index> points, std::span<double> values)>;

/// Numbers along the rays from the sources to the points of an image, and from there to the receivers. The
/// functions must be the same on all ranks.
struct RayValues {
  AtPoints from_source, to_receiver;
};

/// One coordinate per dimension of an image. The last one is the depth.
using Position = std::vector<double>;

/// The positions of the points of an image: origin + index · spacing along each dimension.
struct ImageAxes {
  Position origin, spacing;
};

/// Travel times along straight rays, at one velocity, to the points of an image of these sizes. Waves do not
/// arrive (their time is infinite) along rays at an angle of more than `widest` degrees with the vertical.
GRIDLOPS_EXPORT RayValues straight_rays(const std::vector<Index>& sizes, const ImageAxes& axes,
                                        std::vector<Position> sources, std::vector<Position> receivers,
                                        double velocity, double widest = 90);
/// The weights g(s) g(r) (cos θ_s + cos θ_r) / velocity along straight rays of the lengths s and r, at the
/// angles θ with the vertical: the geometric spreading g(s) is 1/√s in two dimensions and 1/s in three, and
/// the cosines are the obliquity. Lengths below the least spacing of the image count as that, so that the
/// weights are finite.
GRIDLOPS_EXPORT std::vector<RayValues> straight_ray_weights(const std::vector<Index>& sizes,
                                                            const ImageAxes& axes,
                                                            std::vector<Position> sources,
                                                            std::vector<Position> receivers, double velocity);
/// The delays of waves along straight rays between neighbours so far apart, one for sources and one for
/// receivers, in the direction in which they are longest: distance · sin θ / velocity (see Spread).
GRIDLOPS_EXPORT RayValues straight_ray_delays(const std::vector<Index>& sizes, const ImageAxes& axes,
                                              std::vector<Position> sources, std::vector<Position> receivers,
                                              double velocity, double between_sources,
                                              double between_receivers);
/// Numbers from the columns of two column-major tables: points × sources and points × receivers.
GRIDLOPS_EXPORT RayValues tabulated_rays(Index points, std::vector<double> from_sources,
                                         std::vector<double> to_receivers);

/// The source and the receiver of a trace.
struct TraceEnds {
  Index source = 0, receiver = 0;
};

struct Recording {
  double interval = 1;          ///< between samples, in the unit of the travel times; > 0
  std::vector<double> wavelet;  ///< emitted by the sources
  Index centre = 0;             ///< the sample of the wavelet that leaves at time 0
  /// Traces are numbered in the C order of the dims of the data before the samples. Empty: these are sources
  /// × receivers. All ranks pass the same function.
  std::function<TraceEnds(Index trace)> ends{};
};

/// Against aliasing: an arrival is spread over the delay to the next trace, so that migration smooths a trace
/// where its samples are farther apart than the traces let waves be told apart (Lumley, Claerbout, Bevc:
/// Anti-aliased Kirchhoff 3-D migration, SEG Expanded Abstracts, 1994; Abma, Sun, Bernitsas: Antialiasing
/// methods in Kirchhoff migration, Geophysics 64, 1999).
struct Spread {
  /// The sum h of its numbers, in the unit of the travel times, is half the base of a triangle. They are ≥ 0
  /// and finite.
  RayValues delays;
  /// Of the triangles, in samples: h is rounded to one of 1 … widest.
  Index widest = 8;
};

struct KirchhoffOptions {
  /// The weight of a point in a trace is Σ a(s, i) b(r, i) over these pairs of functions. Empty: 1.
  std::vector<RayValues> weights{};
  /// With a limit, a rank keeps no tables. In each product it takes as many points at a time as fit into this
  /// memory, but at least one, and calls the functions for them. All ranks pass the same limit.
  Index table_bytes = std::numeric_limits<Index>::max();
  std::optional<Spread> spread{};  ///< none: arrivals are not spread
};

/// Kirchhoff demigration, whose adjoint is Kirchhoff migration (Bleistein, Cohen, Stockwell: Mathematics of
/// Multidimensional Seismic Imaging, Migration, and Inversion, 2001, ch. 5). The trace of source s and
/// receiver r is f ∗ y with the wavelet f and
///
///   y(k) = Σᵢ aᵢ mᵢ ((1 − w) δ(k, ⌊t⌋) + w δ(k, ⌊t⌋ + 1)),   w = t − ⌊t⌋,
///   t = (t_s(i) + t_r(i)) / interval
///
/// (with a spread, the trace is f ∗ Σₕ Λₕ ∗ yₕ with the points of half base h, and Λₕ(k) = max(0, h −
/// |k|)/h²) over the points i of the image with 0 ≤ ⌊t⌋ < samples − 1, whose weights are aᵢ. Travel times may
/// be in any unit. They are ≥ 0, and infinite if no wave arrives, which is how they limit an aperture.
/// Weights are finite. Not collective.
///
/// data: arrays whose last dimension has the samples, whole on each rank, cut along any of the others; image:
/// arrays of any dims. If the image is uncut, demigration moves no data, and migration sums images over the
/// parts of the data. If it is cut, along the other grid dimension than the data, demigration sums traces
/// over the parts of the image.
///
/// With a cut image the ranks of a grid row need not all store its traces. Cut data along Axis::all if the
/// image is cut along grid_cols: these ranks compute the traces of all their parts, demigration leaves each
/// one its own part of the sum, and migration gathers the parts. An iteration of a solver sends as much as
/// with data along grid_rows. The same holds for grid columns with all_transposed and grid_rows, and for the
/// points of images. While it works, a rank has room for these parts together; with several columns, twice.
///
/// Times and delays, in samples, and weights are tables of Real<T>. A rank has an element of each for each
/// pair of one of the points and one of the sources or receivers of the traces that it computes with, or
/// table_bytes in all. Beside them it has up to 24 bytes for each of these points and 48
/// for each of these traces. In single precision t samples are exact to about t · 10⁻⁷. The functions are
/// called once for each pair, in the first product; with a limit in table_bytes in every product, which
/// throws their errors on all ranks. Throws ShapeError or UsageError on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> kirchhoff(const Space& data, const Space& image, RayValues times,
                                         const Recording& recording, KirchhoffOptions options = {});

}  // namespace gridlops
