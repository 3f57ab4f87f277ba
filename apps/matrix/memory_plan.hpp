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
#include "gridlops/solve/solver.hpp"

namespace gridlops::program {

/// Everything that determines a solve's memory and traffic.
struct PlannedSolve {
  Solver solver = Solver::cgls;
  Algorithm algorithm = Algorithm::automatic;
  ProductShape shape;
  Index panel = 0;
  Index batch = 0;
  bool one_pass = false, damped = false, initial_guess = false, scaled = false, variances = false,
       guarded = false;
  bool own_damps = false;  ///< columns have dampings of their own
  Index curves = 0;        ///< the dampings of curves by a factor, which takes B and X again
  Layout matrix;
  /// Of the matrix, with the scratch memory of its tiles, if it is compressed or on disks; else empty.
  std::function<Index(int row, int col)> tile_bytes{};
  Space product_range;  ///< of the matrix as an operator
  Space range, domain;  ///< of the solver's operator, which may also redistribute
  Storage storage = Storage::columns;
  std::function<Index(int row, int col)> space_bytes{};  ///< of the space that a sweep makes; empty: none
  Index rest =
      0;  ///< the most columns that are solved at a time of what the space leaves; their B and X count, too
  /// Of a sketch of the matrix, which is freed before the solver takes its vectors; empty: none.
  std::function<Index(int row, int col)> sketch_bytes{};
  Index sketch_columns = 0;  ///< the columns of its products
  /// Of the norms of columns, which are freed before right-hand sides take memory; empty: none.
  std::function<Index(int row, int col)> norms_bytes{};
};

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

/// A table of bytes, each with a name, on the ranks with the least and the most.
std::string bytes_table(std::span<const char* const> names, std::span<const Index> least,
                        std::span<const Index> most);

/// A table of the memory on the ranks with the least and the most, and of the bytes that they receive per
/// iteration.
std::string plan_text(const PlannedSolve& plan);

}  // namespace gridlops::program
