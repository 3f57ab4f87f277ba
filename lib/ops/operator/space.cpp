// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/space.hpp"

#include <utility>

#include "base/instantiate.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/dist_matrix.hpp"

namespace gridlops {

Layout Space::layout(Index nrhs) const { return layout(Partition::balanced(nrhs, grid->parts(columns))); }

template <Scalar T>
void Space::require_contains(const ConstDistMatrix<T>& X, std::string_view name) const {
  if (contains(X)) return;
  throw ShapeError(
      message(name, " is ", X.layout().describe(), X.grid() == grid ? "" : " on another grid",
              ", but the operator takes ", describe(), ", as many as you like",
              X.rows() == dimension() ? "; make it with the operator's own space, or redistribute it" : ""));
}

std::string Space::describe() const {
  const auto place = [](Axis axis) { return message(axis == Axis::uncut ? "" : "along ", name_of(axis)); };
  return message("dimension ", dimension(), " ", place(rows.axis), " with columns ", place(columns),
                 dims.count() == 0 ? "" : ", an array of ", dims.describe());
}

std::string Space::describe_with(const Space& other) const {
  const char* difference = "";
  if (grid != other.grid) {
    difference = ", on different grids";
  } else if (rows.axis == other.rows.axis && dimension() == other.dimension()) {
    difference = rows == other.rows ? ", with elements in different orders" : ", cut at different places";
  }
  const bool can_redistribute =
      grid == other.grid && columns == other.columns && dimension() == other.dimension();
  return message(describe(), " and ", other.describe(), difference,
                 can_redistribute ? "; identity() between the two redistributes" : "");
}

Space array_space(std::shared_ptr<const ProcessGrid> grid, Dims dims, Axis rows, Axis columns) {
  require<ShapeError>(dims.blocks() == grid->parts(rows), "an array of ", dims.describe(), " has ",
                      dims.blocks(), " blocks, but there are ", grid->parts(rows), " parts along ",
                      name_of(rows), "; cut it into as many");
  Cut cut{rows, dims.rows()};
  return {std::move(grid), std::move(cut), columns, std::move(dims)};
}

Space array_space(std::shared_ptr<const ProcessGrid> grid, const std::vector<Index>& sizes, int cut,
                  Axis rows, Axis columns) {
  const int parts = grid->parts(rows);
  return array_space(std::move(grid), Dims::cut_along(sizes, cut, parts), rows, columns);
}

Space moved_to(Axis rows, const Space& space) {
  const Dims& dims = space.dims;
  if (dims.count() == 0)
    return {space.grid, Cut::balanced(rows, space.dimension(), *space.grid), space.columns};
  int cut = 0;
  while (cut + 1 < dims.count() && dims.cut(cut).parts() == 1) ++cut;
  return array_space(space.grid, dims.sizes(), cut, rows, space.columns);
}

#define GRIDLOPS_INSTANTIATE(T) \
  template void Space::require_contains(const ConstDistMatrix<T>&, std::string_view) const;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
