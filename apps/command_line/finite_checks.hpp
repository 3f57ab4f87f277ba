// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/dist/dims.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops::program {

// Where a file holds NaN or infinity, in words.

/// "A.npy holds nan at row 3, column 5 (from 0), in the part of rank 1".
std::string non_finite_text(const std::string& path, const NonFiniteElement& found);

/// Throws InputError with that text, on all ranks of the grid, if X, which was read from the file, has such
/// an element (collective over the grid of X).
template <Scalar T>
void require_finite(const std::string& path, const ConstDistMatrix<T>& X);

/// A part of an array in a file, which ranks have read into the rows of a matrix.
struct ArrayPart {
  Dims dims;
  std::vector<Index> begin{};  ///< where the part begins; empty: at the beginning
  int first_rank = 0;          ///< the rank, of those that the user counts, that is rank 0 of the matrix
};
/// Checks such an array. The place is its index, "(3, 0, 5)"; if X has not one column, the column is its last
/// number.
template <Scalar T>
void require_finite(const std::string& path, const ConstDistMatrix<T>& X, const ArrayPart& part);

}  // namespace gridlops::program
