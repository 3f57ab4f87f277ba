// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>

#include "command_line/option_parser.hpp"
#include "gridlops/comm/process_grid.hpp"
#include "gridlops/ops/cost_model.hpp"

namespace gridlops::program {

/// The arguments of subcommands that multiply by a matrix in a file. A file with an empty name is not wanted.
struct ProductArguments {
  std::string matrix;
  std::optional<GridShape> grid;
  Algorithm algorithm = Algorithm::automatic;
  Index panel = 0;
  std::string transport = "auto";
  std::string device = "cpu";
  std::string machine, report;
  bool hashes = false;
};

/// The help of --matrix, and of the names of all matrices.
inline constexpr const char* matrix_help =
    "The matrix A. Here and elsewhere, P.h5:/A is a dataset in an HDF5 file, and P.h5:/A@0:9,: its first 9 "
    "rows";

/// Add the options that set these arguments: for products, and for reports of them.
void define_products(Options& options, ProductArguments& product);
void define_product_report(Options& options, ProductArguments& product);

}  // namespace gridlops::program
