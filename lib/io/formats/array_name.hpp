// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/types.hpp"
#include "gridlops/io/array_file.hpp"

namespace gridlops {

/// Some indices of a dimension, as a name has them.
struct Slice {
  std::optional<Index> begin, end;
  Index step = 1;
  bool is_index = false;  ///< begin alone; the dimension is taken away
};

/// The name of an array: its place, and which part of it is meant.
struct ArrayName : ArrayPlace {
  std::string text;           ///< all of it
  std::vector<Slice> slices;  ///< of the first dimensions

  bool is_dataset() const { return !dataset.empty(); }
};
ArrayName parse_array_name(const std::string& name);

/// The chosen indices of one dimension: begin, begin + step, …, `count` in all.
struct Chosen {
  Index begin = 0, count = 0, step = 1;
  bool is_index = false;
};
/// Of each dimension of an array with these sizes what its name chooses. Throws InputError, with the name, if
/// there are too few dimensions, or if one ends before an index.
std::vector<Chosen> choose(const ArrayName& name, const std::vector<Index>& sizes);

/// "2 x 3 x 4"
std::string shape_text(const std::vector<Index>& sizes);

/// Whether a file may hold an array of this shape: see fits_file() for matrices.
bool fits_file(const std::vector<Index>& sizes, ScalarType type);

}  // namespace gridlops
