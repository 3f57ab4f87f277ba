// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/solve/plan.hpp"
#include "matrix/matrix_file.hpp"

namespace gridlops::program {

/// Everything that determines a solve's memory and traffic. plan_solve() sets all up to `domain`.
struct PlannedSolve {
  PlannedIteration iteration;
  ProductShape shape;  ///< with all right-hand sides
  Index batch = 0;
  Layout matrix;
  /// Of the matrix, with the scratch memory of its tiles, if it is compressed or on disks; else empty.
  std::function<Index(int row, int col)> tile_bytes{};
  Space product_range;  ///< of the matrix as an operator
  Space range, domain;  ///< of the solver's operator, which may also redistribute

  bool damped = false, initial_guess = false, scaled = false, variances = false, guarded = false;
  Index bounds = 0;         ///< matrices of bounds, as large as X
  bool own_damps = false;   ///< columns have dampings of their own
  bool weighted = false;    ///< numbers of B have weights
  bool reweighted = false;  ///< and these follow X
  bool may_factor = false;  ///< direct may take the place of the solver, and begins from the same guess
  Index curves = 0;         ///< the dampings of curves by a factor, which takes B and X again
  std::function<Index(int row, int col)> space_bytes{};  ///< of the space that a sweep makes; empty: none
  /// The most columns that are solved at a time of what the space leaves; their B and X count, too.
  Index rest = 0;
  /// Of a sketch of the matrix, which is freed before the solver takes its vectors; empty: none.
  std::function<Index(int row, int col)> sigma_min_bytes{};
  Index sketch_columns = 0;  ///< the columns of its products
  /// Of the norms of columns, which are freed before right-hand sides take memory; empty: none.
  std::function<Index(int row, int col)> norms_bytes{};
};

/// Returns the plan of a solve, undamped and from zero, with this A on this grid, which need not have ranks.
/// how: how A is kept there. Takes no memory. Not collective.
PlannedSolve plan_solve(const MatrixFile& A, const KeptMatrix& how, const PlannedIteration& iteration,
                        const ProductShape& shape, Index batch,
                        const std::shared_ptr<const ProcessGrid>& grid);

/// The bytes that the rank at (row, col) of the grid needs. The one at (0, 0) has the largest part of
/// everything that ranks divide.
Index memory_of_rank(const PlannedSolve& plan, int row, int col);

/// The largest bytes(row, col) of the ranks of a grid.
template <class Bytes>
Index largest_on(GridShape grid, Bytes&& bytes) {
  Index most = std::numeric_limits<Index>::lowest();
  for (int row = 0; row < grid.rows; ++row)
    for (int col = 0; col < grid.cols; ++col) most = std::max<Index>(most, bytes(row, col));
  return most;
}

/// Returns the bytes of the rank that needs most.
Index most_memory(const PlannedSolve& plan, const MatrixFile& A);

/// Returns the bytes that every rank may keep of an A on disks, if this much memory is for A and the rest of
/// the plan. how: as for plan_solve().
Index room_for_tiles(const PlannedSolve& plan, const MatrixFile& A, const KeptMatrix& how, Index memory);

/// A table of bytes, each with a name, on the ranks with the least and the most.
std::string bytes_table(std::span<const char* const> names, std::span<const Index> least,
                        std::span<const Index> most);

/// A table of the memory on the ranks with the least and the most, and of the bytes that they receive per
/// iteration.
std::string plan_text(const PlannedSolve& plan);

}  // namespace gridlops::program
