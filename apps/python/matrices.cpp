// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "gridlops/comm/failure.hpp"
#include "gridlops/compressed/spatial_order.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/local/overlap.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// A matrix of the caller's block, of which Python has checked the address, the type and the strides.
template <Scalar T>
std::shared_ptr<Matrix<T>> make_view(GridPtr grid, const Layout& layout, std::uintptr_t address,
                                     std::tuple<Index, Index, Index> shape_and_stride, py::object memory,
                                     bool writable) {
  const auto [rows, cols, stride] = shape_and_stride;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  const MatrixView<T> view(reinterpret_cast<T*>(address), rows, cols, stride);
  return std::make_shared<Matrix<T>>(
      Matrix<T>{DistMatrix<T>(std::move(grid), layout, view), keep(std::move(memory)), writable});
}

/// Copies this rank's block into an array in host memory, or back.
template <Scalar T>
void download(const Matrix<T>& X, const py::buffer& array) {
  const py::buffer_info info = array.request(true);
  const MatrixView<T> to = view_of<T>(info);
  const MatrixView<const T> from = X.matrix.local();
  if (from.empty()) return;
  for (Index j = 0; j < to.cols; ++j)
    X.matrix.grid()->backend()->download(from.column(j), to.column(j), to.rows * Index{sizeof(T)});
}
template <Scalar T>
void upload(const py::buffer& array, Matrix<T>& X) {
  const py::buffer_info info = array.request();
  const MatrixView<T> from = view_of<T>(info);
  const MatrixView<T> to = X.output().local();
  if (to.empty()) return;
  for (Index j = 0; j < from.cols; ++j)
    X.matrix.grid()->backend()->upload(from.column(j), to.column(j), from.rows * Index{sizeof(T)});
}

/// If one rank lacks memory, all ranks of the grid learn of it.
template <Scalar T>
std::shared_ptr<Matrix<T>> allocate(GridPtr grid, const Layout& layout) {
  auto result = std::make_shared<Matrix<T>>();
  layout.check(*grid);
  result->matrix = allocate_matrix<T>(std::move(grid), layout);
  result->matrix.set_zero();
  return result;
}

template <Scalar T>
py::buffer_info buffer_of(Matrix<T>& X) {
  const MatrixView<T> local = X.matrix.local();
  constexpr auto size = static_cast<py::ssize_t>(sizeof(T));
  return {local.data,
          size,
          py::format_descriptor<T>::format(),
          2,
          {local.rows, local.cols},
          {size, local.stride * size},
          !X.writable};
}

/// X ← the guess, before a solver with right-hand sides B begins. The solver's own check would come too late
/// for what this overwrites. Throws UsageError on all ranks.
template <Scalar T>
void copy_guess(const Matrix<T>& guess, const Matrix<T>& B, Matrix<T>& X) {
  const ProcessGrid& grid = *X.matrix.grid();
  if (!grid.is_member()) return;
  DistMatrix<T>& to = X.output();
  attempt(grid.comm(), [&] {
    for (const Matrix<T>* read : {&guess, &B})
      if (overlap<T>(read->matrix.local(), to.local()))
        throw UsageError(
            "the guess or the right-hand sides share memory with the matrix for the result, which "
            "would overwrite them before they are read; give the result a matrix of its own",
            KnownTo::one_rank);
  });
  copy<T>(guess.matrix, to);
}

template <Scalar T>
void bind_matrices_of_type(py::module_ native) {
  using M = Matrix<T>;
  py::class_<M, std::shared_ptr<M>>(native, "Matrix", py::buffer_protocol())
      .def_buffer([](M& X) { return buffer_of(X); })
      .def_property_readonly("layout", [](const M& X) { return X.matrix.layout(); })
      .def_property_readonly("owned", [](const M& X) { return X.matrix.owned(); })
      .def_readonly("writable", &M::writable)
      .def_property_readonly(
          "address", [](const M& X) { return reinterpret_cast<std::uintptr_t>(X.matrix.local().data); })
      .def_property_readonly("block",
                             [](const M& X) {
                               const MatrixView<const T> local = X.matrix.local();
                               return std::tuple(local.rows, local.cols, local.stride);
                             })
      .def_property_readonly("rows",
                             [](const M& X) {
                               return std::pair(X.matrix.local_row_range().begin,
                                                X.matrix.local_row_range().end());
                             })
      .def_property_readonly("cols", [](const M& X) {
        return std::pair(X.matrix.local_col_range().begin, X.matrix.local_col_range().end());
      });
  const py::call_guard<py::gil_scoped_release> unlocked;
  native.def("allocate", allocate<T>, unlocked);
  native.def("view", make_view<T>);
  native.def("download", download<T>);
  native.def("upload", upload<T>);
  native.def(
      "redistribute",
      [](T alpha, const M& from, T beta, M& to) { redistribute<T>(alpha, from.matrix, beta, to.output()); },
      unlocked);
  // On the root alone, `whole` is a buffer with the whole matrix in column-major order.
  native.def("gather_into", [](const M& X, int root, const py::object& whole) {
    std::vector<T> values;
    {
      const py::gil_scoped_release release;
      values = gather<T>(X.matrix, root);
    }
    if (whole.is_none()) return;
    const py::buffer_info info = whole.cast<py::buffer>().request(true);
    const MatrixView<T> to = view_of<T>(info);
    for (Index j = 0; j < to.cols; ++j) {
      for (Index i = 0; i < to.rows; ++i) to(i, j) = values[static_cast<std::size_t>(i + j * to.rows)];
    }
  });
  native.def("scatter_from", [](const py::object& whole, int root, M& X) {
    std::vector<T> values;
    if (!whole.is_none()) {
      const py::buffer_info info = whole.cast<py::buffer>().request();
      const MatrixView<T> from = view_of<T>(info);
      for (Index j = 0; j < from.cols; ++j)
        values.insert(values.end(), from.column(j), from.column(j) + from.rows);
    }
    const py::gil_scoped_release release;
    scatter<T>(values, root, X.output());
  });
  native.def(
      "column_dots", [](const M& X, const M& Y) { return column_dots<T>(X.matrix, Y.matrix); }, unlocked);
  native.def(
      "column_norms", [](const M& X, double order) { return column_norms<T>(X.matrix, order); }, unlocked);
  native.def(
      "copy", [](const M& X, M& Y) { copy<T>(X.matrix, Y.output()); }, unlocked);
  native.def("copy_guess", copy_guess<T>, unlocked);
}

}  // namespace

void bind_matrices(py::module_& native) {
  // The positions are an array of points × dimensions, and the order becomes its result.
  native.def("hilbert_order", [](const py::buffer& positions, const py::buffer& order) {
    const py::buffer_info from = positions.request(), to = order.request(true);
    const std::vector<Index> points =
        hilbert_order(static_cast<const double*>(from.ptr), from.shape[0], static_cast<int>(from.shape[1]));
    std::copy(points.begin(), points.end(), static_cast<Index*>(to.ptr));
  });
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_matrices_of_type<T>(module); });
}

}  // namespace gridlops::python
