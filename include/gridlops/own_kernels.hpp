// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/export.hpp"

namespace gridlops {

/// The kernels of this library that take BLAS's place in products of host matrices with few columns, for a
/// user to read. The environment variable GRIDLOPS_KERNELS chooses them for the whole process: auto, blas
/// (none), or baseline, avx2, avx512: these, wherever they can take a product. Throws UsageError if it is
/// something else, or more than this processor has.
GRIDLOPS_EXPORT std::string own_kernels();

}  // namespace gridlops
