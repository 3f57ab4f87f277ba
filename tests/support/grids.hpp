// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"

namespace gridlops::testing {

using GridPtr = std::shared_ptr<const ProcessGrid>;

/// The shapes that tests on this many ranks visit: all that use every rank, and a few smaller ones that leave
/// ranks idle.
inline std::vector<GridShape> all_shapes(int ranks) {
  std::vector<GridShape> shapes;
  for (int rows = 1; rows <= ranks; ++rows)
    if (ranks % rows == 0) shapes.push_back({rows, ranks / rows});
  for (const GridShape smaller : {GridShape{1, 1}, GridShape{2, 2}, GridShape{3, 2}})
    if (smaller.size() < ranks) shapes.push_back(smaller);
  return shapes;
}

/// Shapes of at most three rows and columns, with one smaller shape for three and six ranks. Tests that solve
/// on each grid need no more.
inline std::vector<GridShape> compact_shapes(int ranks) {
  std::vector<GridShape> shapes;
  if (ranks == 3) shapes.push_back({1, 2});
  if (ranks == 6) shapes.push_back({2, 2});
  for (int rows = 1; rows <= std::min(ranks, 3); ++rows)
    if (ranks % rows == 0 && ranks / rows <= 3) shapes.push_back({rows, ranks / rows});
  if (shapes.empty()) shapes.push_back(near_square(ranks));
  return shapes;
}

/// Grids of these shapes (collective over all ranks of the program).
template <class MakeBackend>
std::vector<GridPtr> grids_of(const std::vector<GridShape>& shapes, MakeBackend&& make_backend) {
  std::vector<GridPtr> grids;
  for (const GridShape shape : shapes)
    grids.push_back(std::make_shared<const ProcessGrid>(world(), shape, make_backend()));
  return grids;
}

/// Grids of all_shapes(), each with a backend of its own.
template <class MakeBackend>
std::vector<GridPtr> all_grids(MakeBackend&& make_backend) {
  return grids_of(all_shapes(world().size()), make_backend);
}
inline std::vector<GridPtr> all_grids() { return all_grids(make_backend); }

/// Grids of compact_shapes(), which share a backend.
inline std::vector<GridPtr> compact_grids(const std::shared_ptr<Backend>& backend = make_backend()) {
  return grids_of(compact_shapes(world().size()), [&] { return backend; });
}

inline std::string describe(const ProcessGrid& grid) {
  return "on a " + std::to_string(grid.rows()) + "x" + std::to_string(grid.cols()) + " grid";
}

inline constexpr std::array all_axes{Axis::grid_rows, Axis::grid_cols, Axis::all, Axis::all_transposed,
                                     Axis::uncut};

/// Whether rows and columns may be cut along these axes: at most one of them may use each grid dimension.
inline bool legal(Axis rows, Axis cols) {
  if (rows == Axis::uncut || cols == Axis::uncut) return true;
  return (rows == Axis::grid_rows && cols == Axis::grid_cols) ||
         (rows == Axis::grid_cols && cols == Axis::grid_rows);
}

/// Counts the bytes that this rank sent, received and read in place, and its calls, since the constructor.
class TrafficSince {
 public:
  explicit TrafficSince(const Communicator& comm) : comm_(comm), before_(comm.traffic()) {}

  Index sent() const { return comm_.traffic().bytes_sent - before_.bytes_sent; }
  Index received() const { return comm_.traffic().bytes_received - before_.bytes_received; }
  Index read_in_place() const {
    return comm_.traffic().bytes_read_from_peers - before_.bytes_read_from_peers;
  }
  Index calls(CommOperation operation) const {
    return comm_.traffic().calls_of(operation) - before_.calls_of(operation);
  }
  Index calls() const {
    Index sum = 0;
    for (std::size_t k = 0; k < comm_operation_count; ++k) sum += comm_.traffic().calls[k] - before_.calls[k];
    return sum;
  }
  bool nothing() const { return sent() == 0 && received() == 0 && calls() == 0; }

 private:
  const Communicator& comm_;
  Traffic before_;
};

}  // namespace gridlops::testing
