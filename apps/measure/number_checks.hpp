// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "command_line/finite_checks.hpp"
#include "command_line/grid.hpp"
#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

// Texts and checks for wrong numbers.

bool has_column(const SolveReport& report, StopReason reason);

/// "; A.npy holds nan at row 3, column 5, …" for the matrix in a file, which it reads into this layout; empty
/// if nothing is found (collective over the grid).
template <Scalar T>
std::string non_finite_in_file(const std::string& path, const MatrixHeader& header,
                               const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  DistMatrix<T> X = allocate_matrix<T>(grid, layout);
  read_matrix(path, header, X);
  const auto found = find_non_finite(X);
  return found ? "; " + non_finite_text(path, *found) : "";
}

/// Warns of the guard's findings, in a few lines at most.
void warn_of_alarms(const SolveReport& report);

/// Throws Error, with exit status 1, on all ranks if the block of any rank has changed (collective over the
/// grid). The layout is the matrix's.
void require_same_matrix(const std::string& path, const ProcessGrid& grid, const Layout& layout,
                         bool mine_is_same);

}  // namespace gridlops::program
