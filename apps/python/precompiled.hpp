// SPDX-License-Identifier: BSD-3-Clause
// Precompiled headers that all sources of the Python module include. Each source still includes the headers
// it uses.
#include <pybind11/complex.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <complex>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
