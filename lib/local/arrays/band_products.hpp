// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "local/arrays/array_kernels.hpp"

namespace gridlops {

/// ArrayKernels::add_band() on the host.
template <Scalar T>
void add_band(T alpha, const BandWeights<Real<T>>& A, MatrixView<const T> X, T beta, MatrixView<T> Y,
              const LineExtent& extent);

/// ArrayKernels::add_bands() on the host, if it can read X and Y from memory once; otherwise returns false
/// and does nothing.
template <Scalar T>
bool add_bands_at_once(T alpha, const std::vector<BandTerm<Real<T>>>& terms, MatrixView<const T> X, T beta,
                       MatrixView<T> Y);

}  // namespace gridlops
