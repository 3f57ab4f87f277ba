// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <functional>
#include <memory>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/space.hpp"
#include "use_cases/mdd/data.hpp"

namespace gridlops::program {

// A kernel is made of traces part by part: all of them would take several times the memory of the spectra
// that are kept.

/// Cuts this many lines, of this many traces each, into parts. The traces of a part take about 32 MiB of each
/// rank, or one line of it, and transforms several times as much.
template <Scalar R>
Partition parts_of_kernel(const MddArguments& arguments, const ProcessGrid& grid, Index lines, Index traces);

/// Sets X to real arrays (samples, traces) of this space, cut along the traces.
template <Scalar R>
using FillTraces = std::function<void(const Space& space, DistMatrix<R>& X)>;

/// Returns S(f) = scale · Σ_t s(t) exp(−2πi f t / n) of traces s of n samples, for the frequencies that are
/// kept: arrays (frequencies, traces), cut along the frequencies (collective over the grid).
template <Scalar R>
DistMatrix<std::complex<R>> spectra_of_traces(const MddArguments& arguments,
                                              const std::shared_ptr<const ProcessGrid>& grid, Index traces,
                                              double scale, const FillTraces<R>& fill);

/// The bytes that reading or making the traces of a part and their spectra take on this rank.
template <Scalar R>
Index bytes_of_part(const MddArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid);

/// Copies arrays (frequencies, sources, receivers), cut along the frequencies, of some sources and receivers
/// into the slices of a kernel.
template <Scalar C>
void put_slices(const MddArguments& arguments, Range sources, Range receivers, const DistMatrix<C>& part,
                DistMatrix<C>& G);

}  // namespace gridlops::program
