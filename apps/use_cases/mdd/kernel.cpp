// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/mdd/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"

namespace gridlops::program {

template <Scalar R>
Partition parts_of_kernel(const MddArguments& arguments, const ProcessGrid& grid, Index lines, Index traces) {
  constexpr double bytes_of_rank = 32 << 20;
  const double bytes_of_line = static_cast<double>(sizeof(R)) * static_cast<double>(traces) *
                               static_cast<double>(arguments.axis_samples());
  const auto of_rank = static_cast<Index>(std::max(1.0, bytes_of_rank / bytes_of_line));
  const Index each = of_rank * grid.shape().size();  // so that ranks have equal shares
  std::vector<Index> sizes(static_cast<std::size_t>(lines / each), each);
  if (lines % each > 0) sizes.push_back(lines % each);
  return Partition::with_sizes(sizes);
}

// The transform keeps norms, with one of every two conjugate frequencies: √(2/n) times the sum, and 1/√n
// where there is no other.
template <Scalar R>
DistMatrix<std::complex<R>> spectra_of_traces(const MddArguments& arguments,
                                              const std::shared_ptr<const ProcessGrid>& grid, Index traces,
                                              double scale, const FillTraces<R>& fill) {
  using C = std::complex<R>;
  const Index samples = arguments.axis_samples();
  const Space space = array_space(grid, {arguments.frequencies, traces}, 0);
  DistMatrix<C> spectra = allocate_matrix<C>(grid, space.layout(1));
  DistMatrix<R> pairs = pairs_of(space, spectra);
  const OperatorPtr<R> F = trace_spectra<R>(space, samples);
  DistMatrix<R> in_time = allocate_matrix<R>(grid, F->domain().layout(1));
  fill(F->domain(), in_time);
  F->apply(static_cast<R>(scale * std::sqrt(static_cast<double>(samples) / 2)), in_time, R(0), pairs);
  const Range own = space.local_box()[0];
  for (Index frequency = own.begin; frequency < own.end(); ++frequency) {
    if (frequency != 0 && 2 * frequency != samples) continue;
    const MatrixView<C> slice = spectra.local().row_block({(frequency - own.begin) * traces, traces});
    grid->backend()->template kernels<C>().add(static_cast<R>(std::numbers::sqrt2), slice, C(0), slice);
  }
  return spectra;
}

template <Scalar R>
Index bytes_of_part(const MddArguments& arguments, const std::shared_ptr<const ProcessGrid>& grid) {
  // Of the user's data a part has some receivers, and otherwise sources. A FillTraces holds the traces twice.
  const bool own = arguments.has_own_data();
  const Index lines = own ? arguments.ny : arguments.nx, traces = own ? arguments.nx : arguments.ny;
  const Index largest = parts_of_kernel<R>(arguments, *grid, lines, traces).largest();
  const Space spectra = array_space(grid, {arguments.frequencies, largest * traces}, 0);
  const OperatorPtr<R> F = trace_spectra<R>(spectra, arguments.axis_samples());
  return spectra.local_rows() * Index{sizeof(std::complex<R>)} +
         2 * F->domain().local_rows() * Index{sizeof(R)} +
         F->scratch_bytes(ProductKind::forward, Partition::with_sizes({1}));
}

template <Scalar C>
void put_slices(const MddArguments& arguments, Range sources, Range receivers, const DistMatrix<C>& part,
                DistMatrix<C>& G) {
  const Index slice = arguments.nx * arguments.ny, of_part = sources.size * receivers.size;
  const MatrixView<const C> from = part.local();
  const MatrixView<C> to = G.local();
  for (Index f = 0; f < to.rows / slice; ++f) {
    const MatrixView<C> whole(to.data + f * slice, arguments.ny, arguments.nx);
    G.grid()->backend()->template kernels<C>().copy(
        MatrixView<const C>(from.data + f * of_part, receivers.size, sources.size),
        whole.block(receivers, sources));
  }
}

#define GRIDLOPS_INSTANTIATE(R)                                                                             \
  template Partition parts_of_kernel<R>(const MddArguments&, const ProcessGrid&, Index, Index);             \
  template DistMatrix<std::complex<R>> spectra_of_traces(                                                   \
      const MddArguments&, const std::shared_ptr<const ProcessGrid>&, Index, double, const FillTraces<R>&); \
  template Index bytes_of_part<R>(const MddArguments&, const std::shared_ptr<const ProcessGrid>&);          \
  template void put_slices(const MddArguments&, Range, Range, const DistMatrix<std::complex<R>>&,           \
                           DistMatrix<std::complex<R>>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
