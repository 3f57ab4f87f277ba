// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/io/npy.hpp"
#include "io/file.hpp"

namespace gridlops {

/// write_npy() into a file with this access (collective over the grid of X).
template <Scalar T>
void write_npy(const std::string& path, const ConstDistMatrix<T>& X, int dimensions, Access access);

}  // namespace gridlops
