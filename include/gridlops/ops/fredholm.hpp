// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <concepts>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/linear_operator.hpp"

namespace gridlops {

/// Discrete Fredholm integrals of the first kind, one per slice (in seismics, a frequency):
///
///   d_f = G_f m_f,    G_f of nx × ny.
/// `kernel` is the space of arrays (slices, ny, nx): each G_f in column-major order, one slice after the
/// other, the slices cut along an axis in any parts, and nothing else. G is one uncut column in it.
/// A G that has its block is the operator's from now on, which packs it in host memory where that makes
/// products faster; a view's block stays the caller's, and must not change. Models are arrays (slices, ny),
/// data are arrays (slices, nx), both cut as the slices; their columns lie along `columns`. Every rank
/// multiplies its own slices, and nothing moves. On the host there is one pass over slices that are packed or
/// fit into a cache; others would be read three times.
/// Not collective. Throws ShapeError, on all ranks and without communicating.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> fredholm(const Space& kernel, DistMatrix<T> G, Axis columns = Axis::uncut);

/// Maps real arrays (samples, n) of n traces, cut along the traces into balanced parts, to the first
/// frequencies of every trace: pairs of arrays (frequencies, n) in `spectra`, which may be cut in any way. It
/// applies real_fourier() to whole traces and then redistributes by one all_to_all_v.
/// Not collective. Throws ShapeError or UsageError, on all ranks and without communicating.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> trace_spectra(const Space& spectra, Index samples, Index time_zero = 0);

/// The time axis of a convolution: the number of samples, and which of them is time 0 in the model and in the
/// data. If an axis has negative times and time 0 in the middle, this is samples / 2.
struct ConvolutionTimes {
  Index samples = 0;
  Index model_zero = 0;
  Index data_zero = 0;
};

/// Multi-dimensional convolution d = F₁ᵀ G F m (Wapenaar et al., Geophys. J. Int. 185, 2011, for the first
/// frequencies): traces d(t, x) = Σ_y ∫ g(t − t′, x, y) m(t′, y) dt′, periodic in time. G is a fredholm()
/// whose slices are frequencies 0, 1, … of the kernel. The kernel's time 0 is its sample 0, and G includes
/// all factors due to sampling. F and F₁ are trace_spectra(): models are real arrays (samples, ny), data are
/// (samples, nx), and a product takes two all_to_all_v.
/// Not collective. Throws ShapeError or UsageError, on all ranks and without communicating.
template <std::floating_point R>
GRIDLOPS_EXPORT OperatorPtr<R> multidimensional_convolution(OperatorPtr<std::complex<R>> G,
                                                            const ConvolutionTimes& times);

}  // namespace gridlops
