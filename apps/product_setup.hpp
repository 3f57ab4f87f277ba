// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>

#include "arguments.hpp"
#include "gridlops/npy.hpp"
#include "members.hpp"

namespace gridlops::program {

/// The process grid on the device that was asked for (collective).
/// Throws UsageError on all ranks if this build lacks the transport or the device, or the job the ranks.
std::shared_ptr<const ProcessGrid> make_grid(Communicator& world, const ProductArguments& arguments);

/// What carries the grid's data; empty on idle ranks.
std::string transport_of(const ProcessGrid& grid);

/// The algorithm that was asked for, or the one with the smallest modelled time on the grid.
Algorithm resolve(Algorithm asked, const ProductShape& shape, const ProcessGrid& grid);

/// Throws InputError if the elements of a file are of another type than the matrix's, or if it has not as
/// many rows as the dimension (in words: "columns of A") that it must fit, or if the result has too many
/// elements to be counted.
struct Fit {
  Index rows;
  const char* dimension;
};
void check_operand(const std::string& matrix_path, const NpyHeader& matrix, const std::string& path,
                   const NpyHeader& header, Fit fit);

}  // namespace gridlops::program
