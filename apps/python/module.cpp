// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <string>

#include "gridlops/base/version.hpp"
#include "gridlops/comm/failure.hpp"
#include "native.hpp"

// Reasons: docs/decisions/0033-python.md.
namespace gridlops::python {
namespace {

/// The MPI library to which this module is linked, in that library's own words.
std::string mpi_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  if (MPI_Get_library_version(text, &length) != MPI_SUCCESS) return "unknown";
  return {text, static_cast<std::size_t>(length)};
}

/// The error of the library that Python code has raised; null if it has raised another one.
std::exception_ptr as_ours(const std::exception_ptr& failure) {
  try {
    try {
      std::rethrow_exception(failure);
    } catch (const py::error_already_set& raised) {
      const py::gil_scoped_acquire lock;
      const py::object errors = py::module_::import("gridlops.errors");
      if (!raised.matches(errors.attr("Error"))) return nullptr;
      const auto status = static_cast<ExitStatus>(py::cast<int>(raised.value().attr("status")));
      for (const ErrorType& type : error_types())
        if (raised.matches(errors.attr(type.name))) return type.make(status, py::str(raised.value()), -1);
    }
  } catch (...) {  // also of its attributes, which are the caller's
  }
  return nullptr;
}

}  // namespace

/// The classes of gridlops/errors.py have the names and the exit statuses of this list.
void bind_errors(py::module_& native) {
  py::dict statuses;
  for (const ErrorType& type : error_types()) statuses[type.name] = static_cast<int>(type.status);
  native.attr("error_statuses") = statuses;
  set_types_of_others(as_ours);
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error& error) {
      const py::object type = py::module_::import("gridlops.errors").attr(type_of(error).name);
      const py::object raised = type(error.what());
      raised.attr("status") = static_cast<int>(error.status());
      if (error.rank() >= 0) raised.attr("rank") = error.rank();
      raised.attr("known_to_all_ranks") = error.known_to() == KnownTo::all_ranks;
      PyErr_SetObject(type.ptr(), raised.ptr());
    }
  });
}

}  // namespace gridlops::python

PYBIND11_MODULE(_native, native) {
  using namespace gridlops::python;
  native.attr("version") = gridlops::version;
  native.def("mpi_library", mpi_library);
  bind_errors(native);
  bind_session(native);
  bind_spaces(native);
  bind_matrices(native);
  bind_dlpack(native);
  bind_operators(native);
  bind_array_operators(native);
  bind_slice_groups(native);
  bind_factors(native);
  bind_solvers(native);
  bind_refinement(native);
  bind_sweeps(native);
  bind_ridges(native);
  bind_files(native);
  bind_compressed(native);
  bind_streamed(native);
}
