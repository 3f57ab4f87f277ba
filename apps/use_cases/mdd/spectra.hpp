// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <utility>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/fredholm.hpp"

namespace gridlops::program {

/// Between real traces and their spectra, in the order of a kernel's operator.
template <Scalar R>
class Transform {
 public:
  using C = std::complex<R>;

  /// Spectra are arrays in this space, or what `into`, if it is not null, makes of them.
  Transform(Space arrays, OperatorPtr<C> into, Index samples, Index time_zero)
      : arrays_(std::move(arrays)),
        into_(std::move(into)),
        F_(trace_spectra<R>(arrays_, samples, time_zero)) {}

  const Space& traces() const { return F_->domain(); }
  /// The bytes of this many traces, of their spectra, and of scratch memory, on this rank.
  Index bytes(Index columns) const {
    const Partition cut = Partition::with_sizes({columns});
    Index scratch =
        std::max(F_->scratch_bytes(ProductKind::forward, cut), F_->scratch_bytes(ProductKind::adjoint, cut));
    Index spectra = arrays_.local_rows();
    if (into_ != nullptr) {
      spectra += into_->range().local_rows();
      for (const ProductKind kind : {ProductKind::forward, ProductKind::adjoint})
        scratch = std::max(scratch, into_->scratch_bytes(kind, cut));
    }
    return columns * (traces().local_rows() * static_cast<Index>(sizeof(R)) +
                      spectra * static_cast<Index>(sizeof(C))) +
           scratch;
  }

  DistMatrix<C> spectra_of(const DistMatrix<R>& traces) const {
    DistMatrix<C> spectra = allocate_matrix<C>(arrays_.grid, arrays_.layout(traces.cols()));
    DistMatrix<R> pairs = pairs_of(arrays_, spectra);
    F_->apply(1, traces, 0, pairs);
    if (into_ == nullptr) return spectra;
    DistMatrix<C> grouped = allocate_matrix<C>(arrays_.grid, into_->range().layout(traces.cols()));
    into_->apply(1, spectra, 0, grouped);
    return grouped;
  }
  DistMatrix<R> traces_of(DistMatrix<C>& spectra) const {
    DistMatrix<R> traces = allocate_matrix<R>(arrays_.grid, F_->domain().layout(spectra.cols()));
    if (into_ == nullptr) {
      F_->apply_adjoint(1, pairs_of(arrays_, spectra), 0, traces);
      return traces;
    }
    DistMatrix<C> arrays = allocate_matrix<C>(arrays_.grid, arrays_.layout(spectra.cols()));
    into_->apply_adjoint(1, spectra, 0, arrays);
    F_->apply_adjoint(1, pairs_of(arrays_, arrays), 0, traces);
    return traces;
  }

 private:
  Space arrays_;
  OperatorPtr<C> into_;
  OperatorPtr<R> F_;
};

}  // namespace gridlops::program
