// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/grid_shape.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

class ProcessGrid;
class ScratchStack;
class InnerScratch;

/// Gives back the memory that operators on the grid use while they work. It is as much as the largest product
/// took, and operators take it anew when they are applied next. No operator on the grid works now. All ranks
/// of the grid must call this, and none waits.
GRIDLOPS_EXPORT void release_scratch(const ProcessGrid& grid);

namespace detail {
ScratchStack& scratch_of(const ProcessGrid& grid);
}  // namespace detail

/// P × Q ranks in row-major order: rank r is in row r / Q and column r % Q. Ranks of the communicator beyond
/// P·Q are idle: they own nothing, and operations that are collective over the grid return at once on them.
class GRIDLOPS_EXPORT ProcessGrid {
 public:
  /// Collective over comm. All matrices on this grid live in the memory of backend. Throws UsageError, on all
  /// ranks, if the shape is not positive or needs more ranks than comm has, or if the ranks pass different
  /// shapes.
  ProcessGrid(Communicator& comm, GridShape shape, std::shared_ptr<Backend> backend);
  /// Makes a grid of this shape without any ranks of its own, for asking what its ranks would hold. Not
  /// collective: this process is idle on it. Throws UsageError if the shape is not positive.
  ProcessGrid(GridShape shape, std::shared_ptr<Backend> backend);
  /// Makes a grid of the same ranks whose matrices live in another backend's memory. Not collective.
  ProcessGrid(const ProcessGrid& ranks, std::shared_ptr<Backend> backend);
  ProcessGrid(ProcessGrid&&) = default;
  ProcessGrid& operator=(ProcessGrid&&) = default;

  GridShape shape() const { return shape_; }
  int rows() const { return shape_.rows; }
  int cols() const { return shape_.cols; }

  /// False on idle ranks. There, the functions from here to col_comm(), and my_part(), throw UsageError.
  bool is_member() const { return grid_ != nullptr; }
  int my_row() const { return comm().rank() / shape_.cols; }
  int my_col() const { return comm().rank() % shape_.cols; }

  /// The communicators of all ranks of the grid, of the Q ranks of this rank's grid row, and of the P ranks
  /// of its grid column. This rank is number my_col() in its row, and number my_row() in its column.
  Communicator& comm() const { return not_idle(grid_); }
  Communicator& row_comm() const { return not_idle(row_); }
  Communicator& col_comm() const { return not_idle(col_); }

  const std::shared_ptr<Backend>& backend() const { return backend_; }

  /// The number of parts that an axis has, and the part that a rank of the grid holds.
  int parts(Axis axis) const;
  int part_at(Axis axis, int row, int col) const;
  int my_part(Axis axis) const { return part_at(axis, my_row(), my_col()); }

 private:
  friend ScratchStack& detail::scratch_of(const ProcessGrid& grid);
  friend void release_scratch(const ProcessGrid& grid);
  friend class InnerScratch;

  Communicator& not_idle(const std::shared_ptr<Communicator>& comm) const {
    if (comm == nullptr) throw_idle();
    return *comm;
  }
  [[noreturn]] void throw_idle() const;

  GridShape shape_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<Communicator> grid_, row_, col_;
  mutable std::shared_ptr<ScratchStack> scratch_;  // of operators, while they work
};

}  // namespace gridlops
