// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// The algorithms of matrix_mult(); `automatic` selects the one with the smallest modelled time.
enum class Algorithm { automatic, block, summa, stationary_a, stationary_b };

/// Converts to and from "auto", "block", "summa", "stationary-a", "stationary-b". Throws UsageError for other
/// names.
GRIDLOPS_EXPORT const char* name_of(Algorithm algorithm);
GRIDLOPS_EXPORT Algorithm parse_algorithm(const std::string& name);

/// How a rank stores its block of A in host memory, for the algorithms that never move A: block and
/// stationary_a.
///
///   columns  as given;
///   packed   in the order in which products with few columns read it. The first application packs it a few
///            columns at a time, and releases the memory of columns already packed. If A is a view, the
///            caller's block is left unchanged. stationary_a can then compute
///            LinearOperator::normal_product() in one pass over A. On a GPU A stays as given.
///   planes   packed, with the high 32 bits of every real number apart from the low 32 bits: for double and
///            complex<double>, on hosts. It takes the memory of packed, and products have the same bits.
///            Those of high_plane() read half of it.
enum class Storage { columns, packed, planes };

/// A storage as products, plans and programs know it.
struct StorageRow {
  Storage storage;
  const char* name;
  bool is_as_given;  ///< algorithms that move A, and GPUs, take it, too
  bool reads_once;   ///< on hosts stationary_a computes a normal product in one pass over A
  bool for_doubles;  ///< only for matrices of double and complex<double> in host memory
};
/// The only table of storages, in the order of the enum.
inline constexpr std::array<StorageRow, 3> storage_table{{{Storage::columns, "columns", true, false, false},
                                                          {Storage::packed, "packed", false, true, false},
                                                          {Storage::planes, "planes", false, true, true}}};
constexpr const StorageRow& row_of(Storage storage) {
  return storage_table[static_cast<std::size_t>(storage)];
}

/// Converts to and from the names in the table. Throws UsageError for other names.
constexpr const char* name_of(Storage storage) { return row_of(storage).name; }
GRIDLOPS_EXPORT Storage parse_storage(const std::string& name);

}  // namespace gridlops
