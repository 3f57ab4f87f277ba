// SPDX-License-Identifier: BSD-3-Clause
#include "hdf5/element_type.hpp"

#include <array>
#include <optional>
#include <string_view>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops::h5 {

namespace {

using Names = std::array<const char*, 2>;
// h5py and Julia; MATLAB, Octave and Armadillo; others.
constexpr std::array<Names, 3> all_names_of_parts{{{"r", "i"}, {"real", "imag"}, {"re", "im"}}};

Handle native_type(ScalarType type) {
  return {H5Tcopy(type == ScalarType::f32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE), H5Tclose};
}

Handle pair_type(ScalarType part, const Names& names) {
  const Handle real = native_type(part);
  const std::size_t size = H5Tget_size(real.id());
  Handle pair(H5Tcreate(H5T_COMPOUND, 2 * size), H5Tclose);
  H5Tinsert(pair.id(), names[0], 0, real.id());
  H5Tinsert(pair.id(), names[1], size, real.id());
  return pair;
}

/// f32 or f64, whichever first holds all values of a real type; nothing if neither does. Numbers have no
/// unused bits: in damaged files they may reach beyond their chunk, where HDF5 would follow them.
std::optional<ScalarType> real_type(hid_t stored) {
  std::size_t digits = H5Tget_precision(stored), exponent = 0;
  if (digits != 8 * H5Tget_size(stored)) return std::nullopt;
  if (H5Tget_class(stored) == H5T_FLOAT) {
    std::size_t sign = 0, exponent_at = 0, digits_at = 0;
    if (H5Tget_fields(stored, &sign, &exponent_at, &exponent, &digits_at, &digits) < 0) return std::nullopt;
    ++digits;  // the first one is not stored
  } else if (H5Tget_class(stored) != H5T_INTEGER) {
    return std::nullopt;
  }
  if (digits <= 24 && exponent <= 8) return ScalarType::f32;
  if (digits <= 53 && exponent <= 11) return ScalarType::f64;
  return std::nullopt;
}

Handle member_type(hid_t pair, unsigned member) { return {H5Tget_member_type(pair, member), H5Tclose}; }

std::string member_name(hid_t pair, unsigned member) {
  char* const name = H5Tget_member_name(pair, member);
  std::string text = name == nullptr ? "" : name;
  H5free_memory(name);
  return text;
}

/// The names of the parts of complex numbers, if these are such, one part right after the other.
const Names* names_of_parts(hid_t stored) {
  if (H5Tget_class(stored) != H5T_COMPOUND || H5Tget_nmembers(stored) != 2) return nullptr;
  const std::size_t half = H5Tget_size(stored) / 2, first = H5Tget_member_offset(stored, 0);
  if (first + H5Tget_member_offset(stored, 1) != half || (first != 0 && first != half)) return nullptr;
  for (const unsigned member : {0U, 1U})
    if (2 * H5Tget_size(member_type(stored, member).id()) != H5Tget_size(stored)) return nullptr;
  for (const Names& names : all_names_of_parts)
    for (const unsigned real : {0U, 1U})
      if (member_name(stored, real) == names[0] && member_name(stored, 1 - real) == names[1]) return &names;
  return nullptr;
}

std::string describe(hid_t stored) {
  const std::size_t bits = 8 * H5Tget_size(stored);
  switch (H5Tget_class(stored)) {
    case H5T_INTEGER:
      return message(H5Tget_sign(stored) == H5T_SGN_NONE ? "unsigned " : "", "integers of ", bits, " bits");
    case H5T_FLOAT:
      return message("floating-point numbers of ", bits, " bits");
    case H5T_STRING:
      return "texts";
    case H5T_COMPOUND:
      return message("structures of ", H5Tget_nmembers(stored), " members");
    case H5T_ENUM:
      return "an enumeration, such as booleans";
    case H5T_REFERENCE:
      return "references, such as cells of MATLAB";
    case H5T_VLEN:
      return "sequences of varying length";
    case H5T_ARRAY:
      return "arrays";
    default:
      return "no numbers";
  }
}

/// The remedy for them.
const char* remedy(hid_t stored) {
  switch (H5Tget_class(stored)) {
    case H5T_INTEGER:
    case H5T_FLOAT:
      return ", which f64 cannot hold exactly; convert them in Python: array.astype('f8')";
    case H5T_ENUM:
      return "; convert them in Python: array.astype('f4')";
    case H5T_COMPOUND:
      return "; complex numbers are pairs (r, i), (real, imag) or (re, im) of floating-point numbers";
    default:
      return "; real or complex numbers are needed";
  }
}

}  // namespace

ElementType element_type(hid_t stored, const std::string& name) {
  if (const std::optional<ScalarType> real = real_type(stored)) return {*real, native_type(*real)};
  if (const Names* names = names_of_parts(stored)) {
    const auto one = real_type(member_type(stored, 0).id()), other = real_type(member_type(stored, 1).id());
    if (one && other) {
      const bool is_double = *one == ScalarType::f64 || *other == ScalarType::f64;
      return {is_double ? ScalarType::c128 : ScalarType::c64,
              pair_type(is_double ? ScalarType::f64 : ScalarType::f32, *names)};
    }
  }
  throw InputError(message(name, ": has elements that are ", describe(stored), remedy(stored)));
}

Handle stored_type(ScalarType type) {
  switch (type) {
    case ScalarType::f32:
    case ScalarType::f64:
      return native_type(type);
    case ScalarType::c64:
      return pair_type(ScalarType::f32, all_names_of_parts[0]);
    case ScalarType::c128:
      break;
  }
  return pair_type(ScalarType::f64, all_names_of_parts[0]);
}

}  // namespace gridlops::h5
