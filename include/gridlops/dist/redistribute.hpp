// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

// All three throw OutOfMemory on all ranks, before any element moves, if a rank lacks memory.

/// to ← alpha · from + beta · to for any two layouts on one grid (collective over the grid). Takes one
/// all_to_all_v, in which the canonical owners send and every rank that holds a copy receives. With beta = 0
/// the old contents are not read. Throws ShapeError if shapes or grids differ.
template <Scalar T>
GRIDLOPS_EXPORT void redistribute(T alpha, const ConstDistMatrix<T>& from, T beta, DistMatrix<T>& to);

/// to ← from.
template <Scalar T>
void redistribute(const ConstDistMatrix<T>& from, DistMatrix<T>& to) {
  redistribute(T(1), from, T(0), to);
}

/// Returns the whole matrix, column-major without gaps, in host memory of the grid's rank `root`, and nothing
/// on the others (collective over the grid).
template <Scalar T>
GRIDLOPS_EXPORT std::vector<T> gather(const ConstDistMatrix<T>& X, int root);

/// X ← the whole matrix, which the grid's rank `root` passes in host memory, column-major without gaps
/// (collective over the grid). Other ranks' `whole` is not used. Throws ShapeError on all ranks if the root's
/// has another size.
template <Scalar T>
GRIDLOPS_EXPORT void scatter(const std::vector<T>& whole, int root, DistMatrix<T>& X);

}  // namespace gridlops
