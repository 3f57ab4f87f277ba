// SPDX-License-Identifier: BSD-3-Clause
#include <set>
#include <string>
#include <vector>

#include "gridlops/comm/failure.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/io/output_folder.hpp"
#include "native.hpp"

namespace gridlops::python {
namespace {

/// Calls action() on every rank, and raises on all what it raises on one. Collective over comm.
void attempt_in_python(Communicator& comm, const py::function& action) {
  const py::gil_scoped_release release;
  attempt(comm, [&] {
    const py::gil_scoped_acquire lock;
    action();
  });
}

/// The sizes and the name of the element type.
template <class Header>
py::tuple described(const std::vector<Index>& sizes, const Header& header) {
  return py::make_tuple(py::tuple(py::cast(sizes)), type_name(header.type));
}

template <Scalar T>
void bind_files_of_type(py::module_ native) {
  using M = Matrix<T>;
  const py::call_guard<py::gil_scoped_release> unlocked;
  native.def(
      "read_matrix",
      [](const std::string& name, M& X) {
        if (!X.matrix.grid()->is_member()) return;
        read_matrix<T>(name, read_matrix_header(X.matrix.grid()->comm(), name), X.output());
      },
      unlocked);
  native.def(
      "read_array",
      [](const std::string& name, const Space& space, M& X) {
        if (!X.matrix.grid()->is_member()) return;
        read_array<T>(name, read_array_header(X.matrix.grid()->comm(), name), space.dims, X.output());
      },
      unlocked);
  native.def(
      "write_matrix",
      [](const std::string& name, const M& X, int dimensions, const std::string& like) {
        write_matrix<T>(name, X.matrix, dimensions, like);
      },
      unlocked);
  native.def(
      "write_array",
      [](const std::string& name, const Space& space, const M& X, const std::string& like) {
        write_array<T>(name, space.dims, X.matrix, like);
      },
      unlocked);
}

}  // namespace

void bind_files(py::module_& native) {
  native.def("attempt", attempt_in_python);
  native.def("claim_folder",
             [](const std::string& directory, const std::string& kind, const std::set<std::string>& names) {
               claim_folder(directory, kind, [&](const std::string& name) { return names.contains(name); });
             });
  native.def("array_header", [](Communicator& comm, const std::string& name) {
    ArrayHeader header;
    {
      const py::gil_scoped_release release;
      header = read_array_header(comm, name);
    }
    return described(header.sizes, header);
  });
  native.def("hdf5_text", hdf5_text);
  for_each_type(native, []<Scalar T>(py::module_ module) { bind_files_of_type<T>(module); });
}

}  // namespace gridlops::python
