// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/base/types.hpp"
#include "hdf5/handles.hpp"

namespace gridlops::h5 {

/// The names of the attributes by which netCDF, and the conventions CF, say how numbers are stored.
bool is_of_packing(const std::string& attribute);

/// The numbers of a dataset that stand for none, by its attributes of netCDF.
class MissingValues {
 public:
  /// Throws InputError, with `name`, if the dataset's numbers are packed, or if an attribute that speaks of
  /// missing elements is not understood.
  MissingValues(hid_t dataset, std::string name);

  /// Whether no element can be missing.
  bool is_empty() const { return values_.empty() && ranges_.empty(); }

  /// The first of these numbers that stands for none; count if there is none.
  template <class R>
  Index find(const R* numbers, Index count) const;
  /// The attributes, for a message: "_FillValue is -999".
  const std::string& text() const { return text_; }

 private:
  std::vector<double> numbers_in(hid_t dataset, const char* attribute);

  std::string name_, text_;
  std::vector<double> values_;
  std::vector<std::pair<double, double>> ranges_;  ///< of valid numbers
};

}  // namespace gridlops::h5
