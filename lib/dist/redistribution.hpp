// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/redistribute.hpp"

namespace gridlops {

/// The arrays that one redistribution exchanges, kept for the next.
template <Scalar T>
struct RedistributionWorkspace {
  Buffer<T> outgoing, incoming;

  /// Makes room for what this rank sends and receives (throws OutOfMemory on this rank alone).
  void reserve(const ProcessGrid& grid, const Layout& from, const Layout& to);
};

/// redistribute() with a workspace that has room for it.
template <Scalar T>
void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to,
                  RedistributionWorkspace<T>& workspace);

}  // namespace gridlops
