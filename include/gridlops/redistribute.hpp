// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/dist_matrix.hpp"
#include "gridlops/export.hpp"

namespace gridlops {

// All three throw on all ranks, before an element moves, if one of them has not enough memory.

/// to ← alpha · from + beta · to for two layouts on one grid, whatever they are (collective over the grid):
/// one all_to_all_v, in which the canonical owners send and every rank that holds a copy receives. With beta
/// = 0 the old contents are not read. Throws ShapeError if shapes or grids differ.
template <Scalar T>
GRIDLOPS_EXPORT void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to);

/// to ← from.
template <Scalar T>
void redistribute(const ConstDistMatrix<T>& from, DistMatrix<T>& to) {
  redistribute(T(1), from, T(0), to);
}

/// The whole matrix, column-major without gaps, in host memory of the grid's rank `root`; empty elsewhere
/// (collective over the grid).
template <Scalar T>
GRIDLOPS_EXPORT std::vector<T> gather(const ConstDistMatrix<T>& X, int root);

/// X ← the whole matrix that the grid's rank `root` has in host memory, column-major without gaps; `whole` is
/// not used elsewhere (collective over the grid). Throws ShapeError on all ranks if the root's has another
/// size.
template <Scalar T>
GRIDLOPS_EXPORT void scatter(const std::vector<T>& whole, int root, DistMatrix<T>& X);

}  // namespace gridlops
