// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// The algorithms of matrix_mult(); `automatic` stands for the one with the smallest modelled time.
enum class Algorithm { automatic, block, summa, stationary_a, stationary_b };

/// "auto", "block", "summa", "stationary-a", "stationary-b"; and back, or UsageError.
GRIDLOPS_EXPORT const char* name_of(Algorithm algorithm);
GRIDLOPS_EXPORT Algorithm parse_algorithm(const std::string& name);

/// How a rank stores its block of A in host memory where A never moves: in block and stationary_a.
///
///   columns  as it was given;
///   packed   in the order in which products with few columns read it. It is packed at the first application,
///            some columns at a time, and the memory of packed columns is given back meanwhile. If A is a
///            view the caller's block stays as it is. stationary_a then has one pass over A for
///            LinearOperator::normal_product(). On a GPU A stays as it was given.
enum class Storage { columns, packed };

/// "columns", "packed"; and back, or UsageError.
GRIDLOPS_EXPORT const char* name_of(Storage storage);
GRIDLOPS_EXPORT Storage parse_storage(const std::string& name);

}  // namespace gridlops
