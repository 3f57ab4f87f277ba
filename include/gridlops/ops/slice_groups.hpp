// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gridlops {

// The block diagonal of many matrices, the slices (in seismics, one for each frequency), on groups of ranks.
// Slices may have different shapes. Each group has a P × Q grid of its own, on which Algorithm::stationary_a
// multiplies its slices one after the other. See fredholm() for arrays of which every rank has whole slices.
//
//   const std::vector<ProductShape> slices(300, {1000, 800, 8, ScalarType::c64});
//   const SliceGroups groups(grid, slices, divide_ranks(slices, grid->rows() * grid->cols()));
//   auto matrices = allocate_slices<std::complex<float>>(groups);  // those of this rank's own_slices()
//   Index slice = groups.own_slices().begin;
//   for (auto& matrix : matrices) fill_slice(slice++, matrix);
//   const auto A = grouped_slices(groups, std::move(matrices));  // from groups.models() to groups.data()
//
// Reasons: docs/decisions/0054-groups-of-ranks.md.

/// Consecutive ranks, as a grid of this shape, and the number of consecutive slices that they share.
struct RankGroup {
  GridShape shape;
  Index slices = 0;
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

/// Returns the modelled seconds of each group for one product with each of its slices and one with each
/// adjoint. A product computes or reads the largest block of A, whichever takes longer, and then sends.
/// Throws UsageError if the groups have another number of slices.
GRIDLOPS_EXPORT std::vector<double> group_seconds(const std::vector<ProductShape>& slices,
                                                  const std::vector<RankGroup>& groups,
                                                  const MachineModel& machine = {});

/// Divides ranks into groups, and slices among the groups, such that the slowest group takes the fewest
/// group_seconds(). Up to 1e-9 of its time, no other division into consecutive ranks and consecutive slices
/// is faster. It uses no more ranks than that takes. Not collective; the same on all ranks. Takes some
/// microseconds for each grid of each slice of another shape. Throws UsageError unless ranks > 0.
GRIDLOPS_EXPORT std::vector<RankGroup> divide_ranks(const std::vector<ProductShape>& slices, int ranks,
                                                    const MachineModel& machine = {});

/// The vectors of all slices. A rank has its rows of the first slice of its group, followed by its rows of
/// the second, and so on, as in a stack.
struct GroupedSpace {
  Space space;  ///< the rows are cut along Axis::all
  /// For each rank of the grid, and each slice of its group: which rows of that slice the rank has. Rows are
  /// numbered as if the slices lay one after the other.
  std::vector<std::vector<Range>> rows;
};

/// Slices on groups of ranks of a grid: the first group has the first ranks and the first slices, and so on.
/// Ranks that are left over have no slices, and no rows of any vector.
class GRIDLOPS_EXPORT SliceGroups {
 public:
  /// Makes a grid for each group (collective over the grid). Of a slice only rows and cols are used. Throws
  /// UsageError, on all ranks, if the groups need more ranks than the grid has, or have another number of
  /// slices, or if the ranks pass different arguments.
  SliceGroups(std::shared_ptr<const ProcessGrid> grid, std::vector<ProductShape> slices,
              std::vector<RankGroup> groups);

  const std::shared_ptr<const ProcessGrid>& grid() const { return grid_; }
  const std::vector<ProductShape>& slices() const { return slices_; }
  const std::vector<RankGroup>& groups() const { return groups_; }
  const GroupedSpace& models() const { return models_; }
  const GroupedSpace& data() const { return data_; }

  /// The grid of this rank's group, and its slices. A rank without a group is idle on its own grid.
  const std::shared_ptr<const ProcessGrid>& own_grid() const { return own_grid_; }
  Range own_slices() const { return own_slices_; }

 private:
  void place();

  std::shared_ptr<const ProcessGrid> grid_, own_grid_;
  std::vector<ProductShape> slices_;
  std::vector<RankGroup> groups_;
  GroupedSpace models_, data_;
  Range own_slices_;
};

/// Returns the storage of grouped_slices() that makes repeated products in host memory faster: packed if more
/// than half of all elements are in slices for whose largest block that holds, also where blocks fit into
/// caches. Of a slice it also uses nrhs and type. Returns the same on all ranks.
GRIDLOPS_EXPORT Storage faster_storage(const SliceGroups& groups);

/// Returns uninitialised matrices for this rank's own_slices(), on own_grid(), with the matrix_layout() of
/// stationary_a (collective over the grid). Throws OutOfMemory on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<DistMatrix<T>> allocate_slices(const SliceGroups& groups);

/// Returns the matrices of this rank's own_slices(), moved from a kernel as fredholm() takes it, by one
/// all_to_all_v (collective over the grid). G is one uncut column in `kernel`, the space of arrays (slices,
/// ny, nx), cut along Axis::all and the slices only; groups.slices() are as many of nx × ny. Throws
/// ShapeError and OutOfMemory on all ranks.
template <Scalar T>
GRIDLOPS_EXPORT std::vector<DistMatrix<T>> slices_of_kernel(const SliceGroups& groups, const Space& kernel,
                                                            const ConstDistMatrix<T>& G);

/// The block diagonal of all slices, from groups.models() to groups.data(). Every rank passes the matrices of
/// its own_slices(), laid out as those of allocate_slices() (collective over the grid). A matrix that owns
/// its block is the operator's from now on; a view's block stays the caller's, and must not change.
///
/// A product sends what stationary_a sends for each slice on its group's grid, and nothing else:
/// product_cost() has the bytes. normal_product() reads packed slices once, and sends what
/// normal_product_cost() says for each. Of the options, panel and lookahead do not matter. Throws ShapeError,
/// on all ranks, if a rank passes other matrices, and UsageError if the ranks' storage or column_stable
/// differ.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> grouped_slices(const SliceGroups& groups, std::vector<DistMatrix<T>> A,
                                              const MatrixMultOptions& options = {});

/// Makes the block diagonal of slices that are operators themselves, such as compressed matrices: every rank
/// passes those of its own_slices(), which are on own_grid() and have the spaces of products by stationary_a.
/// A product applies one after the other. On ranks of the grid has_one_pass() says whether any slice of any
/// group has one; the others are then multiplied by A and Aᴴ in turn. Throws ShapeError, on all ranks, if a
/// rank passes operators of other slices, spaces or grids.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> grouped_slices(const SliceGroups& groups, std::vector<OperatorPtr<T>> A);

/// Moves vectors whose slices lie one after the other to the order of groups, by one all_to_all_v; its
/// adjoint moves them back. `from` is cut along Axis::all at any places, and is not an array, or is one that
/// only its slowest dimension cuts, as of (slices, ny). So the slices of such arrays are multiplied by
///
///   product(adjoint(into_groups<T>(groups.data(), data)),
///           product(A, into_groups<T>(groups.models(), model)))
/// Not collective. Throws ShapeError, on all ranks and without communicating.
template <Scalar T>
GRIDLOPS_EXPORT OperatorPtr<T> into_groups(const GroupedSpace& to, const Space& from);

}  // namespace gridlops
