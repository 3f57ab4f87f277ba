// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>

#include "gridlops/dist/dist_matrix.hpp"
#include "gridlops/ops/linear_operator.hpp"

// The module _native contains everything that needs C++. Each element type has a submodule with NumPy's name
// for it. The package's Python files build the users' interface on it.

namespace gridlops::python {

namespace py = pybind11;
using GridPtr = std::shared_ptr<ProcessGrid>;

/// Keeps a Python object alive for C++, which may copy and drop it on any thread, with or without the
/// interpreter's lock.
inline std::shared_ptr<py::object> keep(py::object object) {
  return {new py::object(std::move(object)), [](py::object* kept) {
            if (Py_IsInitialized() == 0) return;  // the object is gone with the interpreter
            const py::gil_scoped_acquire lock;
            delete kept;
          }};
}

/// A matrix for Python. The block belongs to the matrix, or to the object that `memory` keeps alive.
template <Scalar T>
struct Matrix {
  DistMatrix<T> matrix;
  std::shared_ptr<void> memory;
  bool writable = true;

  /// Throws UsageError if the block is read-only.
  DistMatrix<T>& output() {
    if (!writable) {
      throw UsageError(
          "a matrix that was made of a read-only array cannot take a result: make it of a copy, or let it "
          "have memory "
          "of its own");
    }
    return matrix;
  }
};

/// An operator for Python. pybind11 holds no pointers to const.
template <Scalar T>
struct Operator {
  OperatorPtr<T> ptr;
};

/// Returns this operator, or function. Everything made from it also keeps `memory` alive, which outlives the
/// object: other ranks may read there until it is gone.
template <class Object>
std::shared_ptr<const Object> keep_alive(std::shared_ptr<const Object> A, std::shared_ptr<void> memory) {
  const Object* pointer = A.get();
  return {pointer, [A = std::move(A), memory = std::move(memory)](const Object*) mutable { A.reset(); }};
}

/// Returns make(), and lets other threads of Python run meanwhile.
template <class Make>
auto unlocked(Make&& make) {
  const py::gil_scoped_release release;
  return make();
}

/// A function that says how much of a matrix this rank has read from its disk: bytes, and the seconds that
/// products waited for them. A: a pointer to an operator that may be on disks.
template <class Pointer>
py::cpp_function disk_use_of(const Pointer& A) {
  return py::cpp_function([A] { return py::make_tuple(A->bytes_read(), A->seconds_waited()); });
}

/// A view of the block, for an object that keeps the matrix alive.
template <Scalar T>
DistMatrix<T> share(const std::shared_ptr<Matrix<T>>& X) {
  return DistMatrix<T>(X->matrix.grid(), X->matrix.layout(), X->matrix.local());
}

/// NumPy's name of an element type.
constexpr const char* type_name(ScalarType type) {
  return type == ScalarType::f32   ? "float32"
         : type == ScalarType::f64 ? "float64"
         : type == ScalarType::c64 ? "complex64"
                                   : "complex128";
}

/// The submodule for one element type.
template <Scalar T>
py::module_ submodule_of(py::module_& native) {
  return native.def_submodule(type_name(scalar_type_of<T>));
}

/// Calls bind.template operator()<T>(submodule) for the four element types.
template <class Bind>
void for_each_type(py::module_& native, Bind&& bind) {
  bind.template operator()<float>(submodule_of<float>(native));
  bind.template operator()<double>(submodule_of<double>(native));
  bind.template operator()<std::complex<float>>(submodule_of<std::complex<float>>(native));
  bind.template operator()<std::complex<double>>(submodule_of<std::complex<double>>(native));
}

Axis parse_axis(const std::string& name);

// Each of these is in its own source file; later ones use the classes of earlier ones.
void bind_errors(py::module_& native);
void bind_session(py::module_& native);
void bind_spaces(py::module_& native);
void bind_matrices(py::module_& native);
void bind_dlpack(py::module_& native);
void bind_operators(py::module_& native);
void bind_array_operators(py::module_& native);
void bind_slice_groups(py::module_& native);
void bind_factors(py::module_& native);
void bind_solvers(py::module_& native);
void bind_solve_options(py::module_& native);  // called by bind_solvers()
void bind_refinement(py::module_& native);
void bind_sweeps(py::module_& native);
void bind_ridges(py::module_& native);
void bind_files(py::module_& native);
void bind_compressed(py::module_& native);
void bind_streamed(py::module_& native);

/// The caller's array as a block of this type. Throws UsageError unless its columns lie one after the other.
template <Scalar T>
MatrixView<T> view_of(const py::buffer_info& info) {
  constexpr auto size = static_cast<py::ssize_t>(sizeof(T));
  if (info.ndim != 2 || !py::detail::compare_buffer_info<T>::compare(info)) {
    throw UsageError("a block must be a two-dimensional array of the matrix's type");
  }
  const Index rows = info.shape[0], cols = info.shape[1];
  if (rows == 0 || cols == 0) return {nullptr, rows, cols, rows};
  const bool column_major = (rows == 1 || info.strides[0] == size) &&
                            (cols == 1 || (info.strides[1] % size == 0 && info.strides[1] >= rows * size));
  if (!column_major) {
    throw UsageError(
        "a block of " + std::to_string(rows) + " x " + std::to_string(cols) + " with strides of " +
        std::to_string(info.strides[0]) + " and " + std::to_string(info.strides[1]) +
        " bytes is not in column-major (Fortran) order, so that it cannot be used in place: make it by "
        "numpy.asfortranarray(block), or allocate it with order='F'");
  }
  return {static_cast<T*>(info.ptr), rows, cols, cols == 1 ? rows : info.strides[1] / size};
}

}  // namespace gridlops::python
