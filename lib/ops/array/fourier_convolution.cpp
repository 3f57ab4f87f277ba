// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "local/arrays/fast_fourier.hpp"
#include "ops/array/padding.hpp"
#include "ops/operator/array_products.hpp"

namespace gridlops {

namespace {

using Complex = std::complex<double>;

/// The eigenvalues of periodic convolutions of lines of n samples: Σⱼ fⱼ exp(−2πi k (j−c) / n) for k = 0 …
/// frequencies − 1.
class Eigenvalues {
 public:
  Eigenvalues(Index n, Index frequencies, Index centre)
      : n_(n), frequencies_(frequencies), centre_(centre), fast_(n) {}

  std::vector<Complex> of(std::span<const double> filter) const {
    std::fill_n(period_.data(), n_, Complex(0));
    for (Index j = 0; j < static_cast<Index>(filter.size()); ++j)
      period_.data()[(j - centre_ + n_) % n_] = filter[at(j)];
    fast_.forward(period_.data(), values_.data(), scratch_.data());
    return {values_.data(), values_.data() + frequencies_};
  }

 private:
  Index n_, frequencies_, centre_;
  FastFourier<double> fast_;
  std::shared_ptr<Backend> host_ = make_host_backend();
  Buffer<Complex> period_{host_, n_}, values_{host_, n_}, scratch_{host_, fast_.scratch_size()};
};

/// Multiplies every line of spectra along a dimension by values_of(line), element by element. Lines are
/// numbered in the C order of the other dims.
template <class C, class Values>
OperatorPtr<C> multiplication(const Space& spectra, int dim, Values&& values_of) {
  DistMatrix<C> d(spectra.grid, {spectra.rows, Cut::uncut(1)});
  if (spectra.grid->is_member()) {
    Box others = spectra.local_box();
    std::vector<Index> sizes = spectra.dims.sizes();
    Index inner = 1;
    for (std::size_t k = at(dim) + 1; k < others.size(); ++k) inner *= others[k].size;
    others.erase(others.begin() + dim);
    sizes.erase(sizes.begin() + dim);
    const Index frequencies = spectra.dims.size(dim);
    std::vector<C> block(at(d.local().size()));
    Index number = 0;
    for (const Index line : elements_of(others, sizes)) {
      const Index first = number / inner * frequencies * inner + number % inner;
      const std::vector<Complex>& values = values_of(line);
      for (Index k = 0; k < frequencies; ++k) block[at(first + k * inner)] = static_cast<C>(values[at(k)]);
      ++number;
    }
    spectra.grid->backend()->upload(block.data(), d.local().data, d.local().size() * Index{sizeof(C)});
  }
  return diagonal(spectra, std::move(d));
}

/// Convolves each line with a filter of this length, whose eigenvalues are values_of(Eigenvalues)(line).
template <Scalar T, class Values>
OperatorPtr<T> convolve(const Space& space, int dim, Index length, Index centre, const Values& values_of) {
  require<UsageError>(0 <= centre && centre < length, "a filter of ", length,
                      " samples has no sample number ", centre,
                      " to be its centre; samples are numbered from 0");
  require<ShapeError>(
      0 <= dim && dim < space.dims.count() && space.dims.cut(dim).parts() == 1,
      "a convolution by Fourier transforms along dimension ", dim, " of ", space.describe(),
      " is impossible: the dimension must exist and not be cut; cut another one, and redistribute with "
      "identity(), or use a band_operator()");
  const Index n = fast_length(space.dims.size(dim) + length);
  const Index frequencies = is_complex<T> ? n : n / 2 + 1;
  const OperatorPtr<T> pad = zero_padding<T>(space, dim, n);
  const Space& padded = pad->range();
  const Eigenvalues eigenvalues(n, frequencies, centre);
  auto values = values_of(eigenvalues);
  OperatorPtr<T> F, H;
  if constexpr (is_complex<T>) {
    F = fourier<Real<T>>(padded, dim);
    H = multiplication<T>(padded, dim, values);
  } else {
    F = real_fourier<T>(padded, dim);
    H = on_pairs<T>(multiplication<std::complex<T>>(with_samples(space, dim, frequencies), dim, values));
  }
  // The filter spreads beyond the samples into the zeros behind them, which the operator then drops.
  return product(adjoint(pad), product(adjoint(F), product(H, product(F, pad))));
}

}  // namespace

template <Scalar T>
OperatorPtr<T> fourier_convolution(const Space& space, int dim, const std::vector<double>& filter,
                                   Index centre) {
  return convolve<T>(space, dim, static_cast<Index>(filter.size()), centre, [&](const Eigenvalues& of) {
    return [values = of.of(filter)](Index) -> const std::vector<Complex>& { return values; };
  });
}

template <Scalar T>
OperatorPtr<T> fourier_convolution(const Space& space, int dim, Index length, const LineFilter& filter_of,
                                   Index centre) {
  return convolve<T>(space, dim, length, centre, [&](const Eigenvalues& of) {
    return [&filter_of, &of, filter = std::vector<double>(at(length))](Index line) mutable {
      std::fill(filter.begin(), filter.end(), 0.0);
      filter_of(line, filter);
      return of.of(filter);
    };
  });
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template OperatorPtr<T> fourier_convolution(const Space&, int, const std::vector<double>&, Index); \
  template OperatorPtr<T> fourier_convolution(const Space&, int, Index, const LineFilter&, Index);
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)

}  // namespace gridlops
