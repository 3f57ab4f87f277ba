// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "gridlops/communicator.hpp"
#include "gridlops/dist_matrix.hpp"

namespace gridlops {

/// A matrix of this layout, uninitialised (collective over the grid). Throws OutOfMemory on all ranks if one
/// of them has not enough memory.
template <Scalar T>
DistMatrix<T> make_together(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  if (!grid->is_member()) return DistMatrix<T>(grid, layout);
  std::optional<DistMatrix<T>> made;
  succeed_together(grid->comm(), [&] { made.emplace(grid, layout); });
  return std::move(*made);
}

/// A copy of X in memory of its own (collective over the grid). Throws as make_together() does.
template <Scalar T>
DistMatrix<T> clone_together(const ConstDistMatrix<T>& X) {
  DistMatrix<T> result = make_together<T>(X.grid(), X.layout());
  copy(X, result);
  return result;
}

}  // namespace gridlops
