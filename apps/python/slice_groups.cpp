// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/slice_groups.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "native.hpp"

namespace gridlops::python {
namespace {

using Shapes = std::vector<std::pair<Index, Index>>;
using Groups = std::vector<std::pair<std::pair<int, int>, Index>>;  // ((P, Q), slices)

std::vector<ProductShape> slices_of(const Shapes& shapes, Index nrhs, ScalarType type) {
  std::vector<ProductShape> slices;
  for (const auto& [rows, cols] : shapes) slices.push_back({rows, cols, nrhs, type});
  return slices;
}

std::shared_ptr<SliceGroups> make_groups(std::shared_ptr<ProcessGrid> grid, const Shapes& shapes,
                                         const Groups& groups) {
  std::vector<RankGroup> division;
  for (const auto& [shape, slices] : groups) division.push_back({{shape.first, shape.second}, slices});
  return std::make_shared<SliceGroups>(std::move(grid), slices_of(shapes, 1, ScalarType::f64), division);
}

template <Scalar T>
void bind_slice_groups_of_type(py::module_ native) {
  using M = Matrix<T>;
  using A = Operator<T>;
  const py::call_guard<py::gil_scoped_release> unlocked;
  native.def("divide_ranks", [](const Shapes& shapes, int ranks, Index nrhs) {
    Groups groups;
    for (const RankGroup& group : divide_ranks(slices_of(shapes, nrhs, scalar_type_of<T>), ranks))
      groups.push_back({{group.shape.rows, group.shape.cols}, group.slices});
    return groups;
  });
  native.def(
      "allocate_slices",
      [](const SliceGroups& groups) {
        std::vector<std::shared_ptr<M>> matrices;
        for (DistMatrix<T>& matrix : allocate_slices<T>(groups))
          matrices.push_back(std::make_shared<M>(M{std::move(matrix), nullptr}));
        return matrices;
      },
      unlocked);
  // The matrices have no elements afterwards.
  native.def(
      "grouped_slices",
      [](const SliceGroups& groups, const std::vector<std::shared_ptr<M>>& matrices,
         const std::string& storage) {
        std::vector<DistMatrix<T>> slices;
        for (const std::shared_ptr<M>& matrix : matrices) slices.push_back(std::move(matrix->matrix));
        return A{grouped_slices<T>(groups, std::move(slices), {.storage = parse_storage(storage)})};
      },
      unlocked);
  native.def("into_groups", [](const SliceGroups& groups, bool of_data, const Space& from) {
    return A{into_groups<T>(of_data ? groups.data() : groups.models(), from)};
  });
}

}  // namespace

void bind_slice_groups(py::module_& native) {
  py::class_<SliceGroups, std::shared_ptr<SliceGroups>>(native, "SliceGroups")
      .def(py::init(&make_groups), py::call_guard<py::gil_scoped_release>())
      .def_property_readonly("own_slices", [](const SliceGroups& groups) {
        return std::pair(groups.own_slices().begin, groups.own_slices().end());
      });
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_slice_groups_of_type<T>(module); });
}

}  // namespace gridlops::python
