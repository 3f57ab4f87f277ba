// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <ranges>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// The element types of messages. Complex numbers travel as pairs of reals.
enum class ElementType { byte, i32, i64, f32, f64 };

constexpr Index size_of(ElementType type) {
  switch (type) {
    case ElementType::byte:
      return 1;
    case ElementType::i32:
    case ElementType::f32:
      return 4;
    case ElementType::i64:
    case ElementType::f64:
      break;
  }
  return 8;
}

template <class T>
concept Transferable = Scalar<T> || std::same_as<T, std::byte> || std::same_as<T, char> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

namespace detail {

template <Transferable T>
inline constexpr ElementType element_type_of = sizeof(T) == 1                  ? ElementType::byte
                                               : std::same_as<T, std::int32_t> ? ElementType::i32
                                               : std::same_as<T, std::int64_t> ? ElementType::i64
                                               : std::same_as<T, float> || (is_complex<T> && sizeof(T) == 8)
                                                   ? ElementType::f32
                                                   : ElementType::f64;

/// `count` counts elements of T; `reals_per_element` is 2 for complex T.
template <class Pointer>
struct BasicElements {
  Pointer data = nullptr;
  Index count = 0;
  ElementType type = ElementType::byte;
  int reals_per_element = 1;

  BasicElements() = default;
  BasicElements(Pointer data_, Index count_, ElementType type_, int reals_per_element_ = 1)
      : data(data_), count(count_), type(type_), reals_per_element(reals_per_element_) {}

  /// The elements of any contiguous range of a transferable type: a span, a vector, an array.
  template <std::ranges::contiguous_range R>
  requires Transferable<std::ranges::range_value_t<R>> BasicElements(R&& range)
      : data(std::ranges::data(range)),
        count(static_cast<Index>(std::ranges::size(range))),
        type(element_type_of<std::ranges::range_value_t<R>>),
        reals_per_element(is_complex<std::ranges::range_value_t<R>> ? 2 : 1) {}

  /// The elements of an array of count elements.
  template <class T>
  requires Transferable<std::remove_const_t<T>> BasicElements(T* data_, Index count_)
      : data(data_),
        count(count_),
        type(element_type_of<std::remove_const_t<T>>),
        reals_per_element(is_complex<std::remove_const_t<T>> ? 2 : 1) {}

  /// Bytes of one element; a complex number is one element.
  Index element_size() const { return size_of(type) * reals_per_element; }
  Index bytes() const { return count * element_size(); }
};

}  // namespace detail

/// An array that a communication operation reads or writes, in the memory space of the communicator. Its
/// element type is known at run time only. Converts from spans and other contiguous ranges.
using Elements = detail::BasicElements<void*>;

/// Elements that are only read.
struct ConstElements : detail::BasicElements<const void*> {
  using BasicElements::BasicElements;
  ConstElements(const Elements& other)
      : BasicElements(other.data, other.count, other.type, other.reals_per_element) {}
};

}  // namespace gridlops
