// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <initializer_list>
#include <iosfwd>
#include <string>
#include <string_view>
#include <type_traits>

#include "gridlops/base/export.hpp"

namespace gridlops {

/// A value in a text, of any type with an operator<<, or a manipulator. It refers to texts and to values of
/// other types than numbers, which must outlive it.
class GRIDLOPS_EXPORT MessagePart {
 public:
  template <class Value>
  MessagePart(const Value& value) {
    if constexpr (std::is_same_v<Value, char>) {
      print_ = &print_character;
      value_.character = value;
    } else if constexpr (std::is_floating_point_v<Value>) {
      print_ = &print_real;
      value_.real = static_cast<double>(value);
    } else if constexpr (std::is_integral_v<Value> && std::is_signed_v<Value>) {
      print_ = &print_integer;
      value_.integer = value;
    } else if constexpr (std::is_integral_v<Value>) {
      print_ = &print_natural;
      value_.natural = value;
    } else if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      print_ = &print_text;
      value_.text = std::string_view(value);
    } else {
      print_ = [](std::ostream& text, const Any& any) { text << *static_cast<const Value*>(any.other); };
      value_.other = &value;
    }
  }
  MessagePart(std::ios_base& (&manipulator)(std::ios_base&)) : print_(&print_manipulator) {
    value_.manipulator = &manipulator;
  }

  friend std::ostream& operator<<(std::ostream& text, const MessagePart& part) {
    part.print_(text, part.value_);
    return text;
  }

 private:
  union Any {
    char character;
    double real;
    long long integer;
    unsigned long long natural;
    std::string_view text{};
    std::ios_base& (*manipulator)(std::ios_base&);
    const void* other;
  };
  static void print_character(std::ostream&, const Any&);
  static void print_real(std::ostream&, const Any&);
  static void print_integer(std::ostream&, const Any&);
  static void print_natural(std::ostream&, const Any&);
  static void print_text(std::ostream&, const Any&);
  static void print_manipulator(std::ostream&, const Any&);

  void (*print_)(std::ostream&, const Any&);
  Any value_;
};

/// A text: the parts, one after the other. The library makes all texts with numbers here, because numbers
/// must look the same in every locale: file names and headers are read again.
GRIDLOPS_EXPORT std::string joined(std::initializer_list<MessagePart> parts);

template <class... Parts>
std::string message(const Parts&... parts) {
  return joined({MessagePart(parts)...});
}

/// Throws E with the parts as its text unless condition holds.
template <class E, class... Parts>
void require(bool condition, const Parts&... parts) {
  if (!condition) throw E(message(parts...));
}

}  // namespace gridlops
