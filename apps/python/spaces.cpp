// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/ops/space.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

constexpr Axis axes[] = {Axis::grid_rows, Axis::grid_cols, Axis::all, Axis::all_transposed, Axis::uncut};

ScalarType parse_type(const std::string& name) {
  if (name == "float32") return ScalarType::f32;
  if (name == "complex64") return ScalarType::c64;
  return name == "complex128" ? ScalarType::c128 : ScalarType::f64;
}

std::vector<Index> sizes_of(const Partition& partition) {
  std::vector<Index> sizes;
  for (int part = 0; part < partition.parts(); ++part) sizes.push_back(partition.size(part));
  return sizes;
}

py::slice slice_of(Range range) { return {range.begin, range.end(), 1}; }

/// A box as an index of a whole array. A rank without one has an empty box.
py::tuple index_of(const Box& box) {
  py::list slices;
  for (const Range range : box) slices.append(slice_of(range));
  return py::tuple(slices);
}

/// The rows of this rank's part, as a box of the array that they are, or of a vector.
Box local_box(const Space& space) {
  const std::size_t dims = space.dims.count() == 0 ? 1 : static_cast<std::size_t>(space.dims.count());
  if (!space.grid->is_member()) return Box(dims, Range{0, 0});
  if (space.dims.count() > 0) return space.local_box();
  return {space.rows.partition.range(space.grid->my_part(space.rows.axis))};
}

/// The box of each part of the rows.
py::list boxes(const Space& space) {
  py::list all;
  for (int part = 0; part < space.rows.partition.parts(); ++part)
    all.append(
        index_of(space.dims.count() == 0 ? Box{space.rows.partition.range(part)} : space.dims.block(part)));
  return all;
}

/// The grid, the communicator it was made of, which has the idle ranks, too, and the number of this rank's
/// GPU, or 0. `address` points to the MPI_Comm of an mpi4py communicator. Collective over it.
std::tuple<GridPtr, std::shared_ptr<Communicator>, int> make_grid(std::uintptr_t address,
                                                                  std::optional<std::pair<int, int>> shape,
                                                                  const std::string& transport, bool on_gpu) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): Python knows addresses as numbers
  const auto mpi = make_mpi_communicator(*reinterpret_cast<const MPI_Comm*>(address));
  const GridShape grid = shape ? GridShape{shape->first, shape->second} : near_square(mpi->size());
  const int gpu = on_gpu ? gpu_of_rank(*mpi) : 0;
  const std::shared_ptr<Backend> backend =
      on_gpu ? attempt(*mpi, [&] { return make_gpu_backend(gpu); }) : make_host_backend();
  std::shared_ptr<Communicator> comm =
      on_gpu ? make_gpu_communicator(*mpi, backend, transport) : make_host_communicator(*mpi, transport);
  auto made = std::make_shared<ProcessGrid>(*comm, grid, backend);
  return {std::move(made), std::move(comm), gpu};
}

py::dict traffic_of(const ProcessGrid& grid) {
  const Traffic traffic = grid.is_member() ? grid.comm().traffic() : Traffic{};
  py::dict result;
  result["bytes_sent"] = traffic.bytes_sent;
  result["bytes_received"] = traffic.bytes_received;
  result["bytes_read_from_peers"] = traffic.bytes_read_from_peers;
  result["seconds_waiting"] = traffic.seconds_waiting;
  return result;
}

void bind_grid(py::module_& native) {
  py::class_<ProcessGrid, GridPtr>(native, "ProcessGrid")
      .def_property_readonly("rows", &ProcessGrid::rows)
      .def_property_readonly("cols", &ProcessGrid::cols)
      .def_property_readonly("is_member", &ProcessGrid::is_member)
      .def_property_readonly("my_row", &ProcessGrid::my_row)
      .def_property_readonly("my_col", &ProcessGrid::my_col)
      .def_property_readonly("rank", [](const ProcessGrid& grid) { return grid.comm().rank(); })
      .def_property_readonly(
          "transport",
          [](const ProcessGrid& grid) { return grid.is_member() ? grid.comm().transport() : "none"; })
      .def_property_readonly("queue",
                             [](const ProcessGrid& grid) {
                               return reinterpret_cast<std::uintptr_t>(grid.backend()->native_queue());
                             })
      .def(
          "synchronize", [](const ProcessGrid& grid) { grid.backend()->synchronize(); },
          py::call_guard<py::gil_scoped_release>())
      .def("traffic", traffic_of);
  py::class_<Communicator, std::shared_ptr<Communicator>>(native, "Communicator");
  native.def("make_grid", make_grid, py::call_guard<py::gil_scoped_release>());
  native.def("broadcast_text", broadcast_text, py::call_guard<py::gil_scoped_release>());
}

void bind_layout(py::module_& native) {
  py::class_<Cut>(native, "Cut")
      .def(py::init([](const std::string& axis, const std::vector<Index>& sizes) {
             return Cut{parse_axis(axis), Partition::with_sizes(sizes)};
           }),
           py::arg("axis"), py::arg("sizes"))
      .def_static(
          "balanced",
          [](const std::string& axis, Index total, const ProcessGrid& grid) {
            return Cut::balanced(parse_axis(axis), total, grid);
          },
          py::arg("axis"), py::arg("total"), py::arg("grid"))
      .def_property_readonly("axis", [](const Cut& cut) { return name_of(cut.axis); })
      .def_property_readonly("sizes", [](const Cut& cut) { return sizes_of(cut.partition); })
      .def_property_readonly("total", [](const Cut& cut) { return cut.partition.total(); })
      .def("__eq__", [](const Cut& a, const Cut& b) { return a == b; });
  py::class_<Layout>(native, "Layout")
      .def(py::init<Cut, Cut>(), py::arg("rows"), py::arg("cols"))
      .def_readonly("rows", &Layout::rows)
      .def_readonly("cols", &Layout::cols)
      .def_property_readonly(
          "shape",
          [](const Layout& layout) { return py::make_tuple(layout.row_count(), layout.col_count()); })
      .def("__repr__", &Layout::describe)
      .def("__eq__", [](const Layout& a, const Layout& b) { return a == b; });
  native.def("blocks_2d", blocks_2d);
  native.def("row_blocks", row_blocks);
  native.def("column_blocks", column_blocks);
  native.def("replicated", replicated);
  native.def("matrix_layout",
             [](const std::string& algorithm, const ProcessGrid& grid, Index rows, Index cols) {
               return matrix_layout(parse_algorithm(algorithm), grid, rows, cols);
             });
  native.def("choose_algorithm",
             [](const ProcessGrid& grid, Index rows, Index cols, Index nrhs, const std::string& type) {
               const ProductShape shape{rows, cols, nrhs, parse_type(type)};
               return name_of(choose_algorithm(shape, grid.shape()));
             });
}

void bind_space(py::module_& native) {
  py::class_<Space>(native, "Space")
      .def(py::init([](GridPtr grid, Cut rows, const std::string& columns) {
             Space space{std::move(grid), std::move(rows), parse_axis(columns)};
             space.layout(0).check(*space.grid);
             return space;
           }),
           py::arg("grid"), py::arg("rows"), py::arg("columns") = "uncut")
      .def_static(
          "array",
          [](GridPtr grid, const std::vector<Index>& sizes, int cut, const std::string& axis,
             const std::string& columns) {
            return array_space(std::move(grid), sizes, cut, parse_axis(axis), parse_axis(columns));
          },
          py::arg("grid"), py::arg("sizes"), py::arg("cut"), py::arg("axis"), py::arg("columns"))
      .def_static(
          "array_with_cuts",
          [](GridPtr grid, const std::vector<std::vector<Index>>& cuts, const std::string& axis,
             const std::string& columns) {
            std::vector<Partition> partitions;
            for (const auto& sizes : cuts) partitions.push_back(Partition::with_sizes(sizes));
            return array_space(std::move(grid), Dims(partitions), parse_axis(axis), parse_axis(columns));
          },
          py::arg("grid"), py::arg("cuts"), py::arg("axis"), py::arg("columns"))
      .def_static("stack", stack_spaces, py::arg("spaces"))
      .def_property_readonly(
          "grid", [](const Space& space) { return std::const_pointer_cast<ProcessGrid>(space.grid); })
      .def_readonly("rows", &Space::rows)
      .def_property_readonly("columns", [](const Space& space) { return name_of(space.columns); })
      .def_property_readonly("dimension", &Space::dimension)
      .def_property_readonly("sizes", [](const Space& space) { return space.dims.sizes(); })
      .def_property_readonly("local_box", [](const Space& space) { return index_of(local_box(space)); })
      .def_property_readonly("boxes", boxes)
      .def(
          "layout", [](const Space& space, Index nrhs) { return space.layout(nrhs); }, py::arg("nrhs"))
      .def("__repr__", &Space::describe)
      .def("__eq__", [](const Space& a, const Space& b) { return a == b; });
}

}  // namespace

Axis parse_axis(const std::string& name) {
  for (const Axis axis : axes) {
    if (name == name_of(axis)) return axis;
  }
  throw UsageError("there is no axis '" + name +
                   "': a dimension is cut along grid_rows, grid_cols, all or all_transposed, or uncut");
}

void bind_spaces(py::module_& native) {
  bind_grid(native);
  bind_layout(native);
  bind_space(native);
}

}  // namespace gridlops::python
