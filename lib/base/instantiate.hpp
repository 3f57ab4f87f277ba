// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>

/// Expands MACRO(T) for the four element types, at the end of a source file that instantiates templates.
#define GRIDLOPS_FOR_EACH_SCALAR(MACRO) \
  MACRO(float)                          \
  MACRO(double)                         \
  MACRO(std::complex<float>)            \
  MACRO(std::complex<double>)
