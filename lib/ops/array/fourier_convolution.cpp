// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "ops/array/padding.hpp"

namespace gridlops {

namespace {

/// Σⱼ fⱼ exp(−2πi k (j−c) / n) for k = 0 … frequencies − 1: the eigenvalues of the periodic convolution.
std::vector<std::complex<double>> eigenvalues(const std::vector<double>& filter, Index centre, Index n,
                                              Index frequencies) {
  const FastFourier<double> fast(n);
  const std::shared_ptr<Backend> host = make_host_backend();
  using Lines = Buffer<std::complex<double>>;
  const Lines period(host, n), values(host, n), scratch(host, fast.scratch_size());
  std::fill_n(period.data(), n, 0.0);
  for (Index j = 0; j < static_cast<Index>(filter.size()); ++j)
    period.data()[(j - centre + n) % n] = filter[at(j)];
  fast.forward(period.data(), values.data(), scratch.data());
  return {values.data(), values.data() + frequencies};
}

/// Multiplies every line of spectra along a dimension by these numbers, element by element.
template <class Complex>
OperatorPtr<Complex> multiplication(const Space& spectra, int dim,
                                    const std::vector<std::complex<double>>& values) {
  DistMatrix<Complex> d(spectra.grid, {spectra.rows, Cut::uncut(1)});
  if (spectra.grid->is_member()) {
    Index inner = 1;
    const Box box = spectra.local_box();
    for (std::size_t k = at(dim) + 1; k < box.size(); ++k) inner *= box[k].size;
    const Index first = d.local_row_range().begin;
    d.fill([&](Index i, Index) {
      return static_cast<Complex>(values[at((i - first) / inner % static_cast<Index>(values.size()))]);
    });
  }
  return diagonal(spectra, std::move(d));
}

}  // namespace

template <Scalar T>
OperatorPtr<T> fourier_convolution(const Space& space, int dim, const std::vector<double>& filter,
                                   Index centre) {
  const auto length = static_cast<Index>(filter.size());
  require<UsageError>(0 <= centre && centre < length, "a filter of ", length,
                      " samples has no sample number ", centre,
                      " to be its centre; samples are numbered from 0");
  require<ShapeError>(
      0 <= dim && dim < space.dims.count() && space.dims.cut(dim).parts() == 1,
      "a convolution by Fourier transforms along dimension ", dim, " of ", space.describe(),
      " is impossible: the dimension must exist and not be cut; cut another one, and redistribute with "
      "identity(), or use a band_operator()");
  const Index n = fast_length(space.dims.size(dim) + length);
  const OperatorPtr<T> pad = zero_padding<T>(space, dim, n);
  const Space& padded = pad->range();
  OperatorPtr<T> F, H;
  if constexpr (is_complex<T>) {
    F = fourier<Real<T>>(padded, dim);
    H = multiplication<T>(padded, dim, eigenvalues(filter, centre, n, n));
  } else {
    const Index frequencies = n / 2 + 1;
    F = real_fourier<T>(padded, dim);
    H = on_pairs<T>(multiplication<std::complex<T>>(with_samples(space, dim, frequencies), dim,
                                                    eigenvalues(filter, centre, n, frequencies)));
  }
  // The filter spreads beyond the samples into the zeros behind them, which the operator then drops.
  return product(adjoint(pad), product(adjoint(F), product(H, product(F, pad))));
}

#define GRIDLOPS_INSTANTIATE(T) \
  template OperatorPtr<T> fourier_convolution(const Space&, int, const std::vector<double>&, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
