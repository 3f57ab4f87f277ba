// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/dist/redistribute.hpp"

namespace gridlops {

/// The elements that the rank at (row, col) of the grid sends and receives in a redistribution. Of both,
/// `kept` elements stay on the rank.
struct RedistributionSizes {
  Index outgoing = 0, incoming = 0, kept = 0;
};
RedistributionSizes redistribution_sizes(const ProcessGrid& grid, const Layout& from, const Layout& to,
                                         int row, int col);

/// Returns the sizes of this rank.
RedistributionSizes own_redistribution_sizes(const ProcessGrid& grid, const Layout& from, const Layout& to);

/// Room for what this rank sends and receives in a redistribution.
template <Scalar T>
struct RedistributionMemory {
  T *outgoing = nullptr, *incoming = nullptr;
};

/// The public redistribute(), in memory of the caller's (collective over the grid). Checks and allocates
/// nothing.
template <Scalar T>
void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to,
                  const RedistributionMemory<T>& memory);

}  // namespace gridlops
