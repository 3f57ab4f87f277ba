// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/dist/redistribute.hpp"

namespace gridlops {

/// What the rank at (row, col) of the grid sends and receives in a redistribution, in elements. Of both,
/// `kept` elements stay on the rank.
struct RedistributionSizes {
  Index outgoing = 0, incoming = 0, kept = 0;
};
RedistributionSizes redistribution_sizes(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                         int row, int col);

/// The arrays that redistributions exchange, kept from one redistribution to the next.
template <Scalar T>
struct RedistributionWorkspace {
  Buffer<T> outgoing, incoming;

  /// Makes room for what this rank sends and receives. Not collective. Throws OutOfMemory on this rank alone.
  void reserve(const ProcessGrid& grid, const Layout& from, const Layout& to);
};

/// The public redistribute(), in a workspace that already has room (collective over the grid). Checks and
/// allocates nothing.
template <Scalar T>
void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to,
                  RedistributionWorkspace<T>& workspace);

}  // namespace gridlops
