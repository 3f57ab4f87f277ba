// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "gridlops/base/error.hpp"
#include "gridlops/solve/solver.hpp"
#include "native.hpp"

// How options of solvers come from Python, and their reports go there.

namespace gridlops::python {

py::dict dict_of(const SolveReport& report);

/// Calls a solver without holding the interpreter's lock, and returns its report for Python.
template <class Solve>
py::dict report_of(Solve&& solve) {
  SolveReport report;
  {
    const py::gil_scoped_release release;
    report = solve();
  }
  return dict_of(report);
}

template <class Enum>
Enum parse(const std::string& name, std::initializer_list<Enum> all, const char* what) {
  std::string names;
  for (const Enum value : all) {
    if (name == name_of(value)) return value;
    names += (names.empty() ? "" : ", ") + std::string(name_of(value));
  }
  throw UsageError("there is no " + std::string(what) + " '" + name + "': take one of " + names);
}

Threshold threshold_of(const py::object& name);

inline PerColumn per_column(const py::object& value) {
  if (!py::hasattr(value, "__len__")) return value.cast<double>();
  return value.cast<std::vector<double>>();
}

}  // namespace gridlops::python
