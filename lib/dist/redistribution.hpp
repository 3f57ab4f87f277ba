// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/redistribute.hpp"

namespace gridlops {

/// The arrays that one redistribution exchanges, kept for the next.
template <Scalar T>
struct RedistributionWorkspace {
  Buffer<T> outgoing, incoming;
};

/// redistribute(), allocating only where the workspace is too small.
template <Scalar T>
void redistribute(T alpha, const DistMatrix<T>& from, T beta, DistMatrix<T>& to,
                  RedistributionWorkspace<T>& workspace);

}  // namespace gridlops
