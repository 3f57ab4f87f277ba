// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

/// X ← X·2^powers[j] for every column j; exact while the elements stay in the range of T. Not collective.
template <Scalar T>
void multiply_by_powers(DistMatrix<T>& X, const std::vector<int>& powers);

/// These powers, each with the other sign.
inline std::vector<int> opposite(std::vector<int> powers) {
  for (int& power : powers) power = -power;
  return powers;
}

/// Returns floor(log₂ maxᵢ|bᵢⱼ|) of every column, and 0 for columns that are zero or not finite (collective
/// over the grid).
template <Scalar T>
std::vector<int> powers_of_columns(const ConstDistMatrix<T>& B);

/// Scales every column to unit norm unless it is zero, and returns the norms before (collective over the
/// grid). They may be too large or small to be squared.
template <Scalar T>
std::vector<double> normalise_columns(DistMatrix<T>& X);

}  // namespace gridlops
