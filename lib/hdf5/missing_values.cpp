// SPDX-License-Identifier: BSD-3-Clause
#include "hdf5/missing_values.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::h5 {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// The bound, or the value, in the elements' own precision: an attribute may have another one.
template <class R>
R rounded(double value) {
  constexpr auto most = static_cast<double>(std::numeric_limits<R>::max());
  return std::abs(value) <= most
             ? static_cast<R>(value)
             : std::copysign(std::numeric_limits<R>::infinity(), static_cast<R>(value > 0 ? 1 : -1));
}

}  // namespace

bool is_of_packing(const std::string& attribute) {
  constexpr std::array names{"scale_factor", "add_offset", "_Unsigned",   "_FillValue",  "missing_value",
                             "valid_min",    "valid_max",  "valid_range", "actual_range"};
  return std::find(names.begin(), names.end(), attribute) != names.end();
}

std::vector<double> MissingValues::numbers_in(hid_t dataset, const char* attribute) {
  if (!has_attribute(dataset, attribute)) return {};
  const Handle found(H5Aopen(dataset, attribute, H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(found.id()), H5Tclose), space(H5Aget_space(found.id()), H5Sclose);
  const H5T_class_t kind = H5Tget_class(type.id());
  const hssize_t count = H5Sget_simple_extent_npoints(space.id());
  std::vector<double> numbers(static_cast<std::size_t>(std::clamp<hssize_t>(count, 0, 1000)));
  const bool is_read = (kind == H5T_INTEGER || kind == H5T_FLOAT) && count == std::ssize(numbers) &&
                       (count == 0 || H5Aread(found.id(), H5T_NATIVE_DOUBLE, numbers.data()) >= 0);
  H5Eclear2(H5E_DEFAULT);
  require<InputError>(is_read, name_, ": has an attribute ", attribute,
                      " that is no number, so that it is not known which elements are missing; delete it, or "
                      "repair it");
  for (const double number : numbers) text_ += message(text_.empty() ? "" : ", ", attribute, " is ", number);
  return numbers;
}

MissingValues::MissingValues(hid_t dataset, std::string name) : name_(std::move(name)) {
  for (const auto& [attribute, neutral] : {std::pair{"scale_factor", 1.0}, std::pair{"add_offset", 0.0}}) {
    for (const double number : numbers_in(dataset, attribute))
      require<InputError>(number == neutral, name_,
                          ": holds packed numbers, whose values are stored · "
                          "scale_factor + add_offset: its attribute ",
                          attribute, " is ", number,
                          "; unpack it, for example by xarray.open_dataset(file).to_netcdf(other) with no "
                          "encoding, or ncpdq -U");
  }
  require<InputError>(!has_attribute(dataset, "_Unsigned"), name_,
                      ": has an attribute _Unsigned, by which its integers may be others than they seem; "
                      "convert them, for example by xarray, or delete the attribute");
  text_.clear();
  for (const char* const attribute : {"_FillValue", "missing_value"})
    for (const double value : numbers_in(dataset, attribute))
      if (!std::isnan(value)) values_.push_back(value);  // NaN is none in any case
  const std::vector<double> least = numbers_in(dataset, "valid_min"), most = numbers_in(dataset, "valid_max"),
                            both = numbers_in(dataset, "valid_range");
  for (const double bound : least) ranges_.emplace_back(bound, infinity);
  for (const double bound : most) ranges_.emplace_back(-infinity, bound);
  require<InputError>(both.empty() || both.size() == 2, name_, ": has an attribute valid_range of ",
                      both.size(), " numbers, where two are needed; delete it, or repair it");
  if (!both.empty()) ranges_.emplace_back(both[0], both[1]);
}

template <class R>
Index MissingValues::find(const R* numbers, Index count) const {
  Index first = count;
  for (const double value : values_) first = std::find(numbers, numbers + first, rounded<R>(value)) - numbers;
  for (const auto& [least, most] : ranges_) {
    const R low = rounded<R>(least), high = rounded<R>(most);
    first = std::find_if(numbers, numbers + first, [&](R x) { return x < low || x > high; }) - numbers;
  }
  return first;
}
template Index MissingValues::find(const float*, Index) const;
template Index MissingValues::find(const double*, Index) const;

}  // namespace gridlops::h5
