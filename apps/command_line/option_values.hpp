// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops::program {

// Parse numbers in the texts of options. They throw a UsageError that quotes the text.

/// A whole number from `lowest` to `highest`.
Index whole_number(const std::string& text, Index lowest, Index highest = std::numeric_limits<Index>::max());
/// A finite number that is not smaller than `lowest`.
double number(const std::string& text, double lowest);
/// A number that bounds others, such as -0.5 or inf; none if the text is not one. Throws UsageError for NaN.
std::optional<double> bound_in(const std::string& text);
/// A whole number, optionally followed by K, M or G, which multiply it by 2¹⁰, 2²⁰ or 2³⁰.
Index size_number(const std::string& text, Index lowest);

/// "a,b,c" is a, b and c.
std::vector<std::string> items(const std::string& list);
/// The numbers of a list: 16 for "16"; 1, 2, 4, 8 and 16 for "1..16"; 1, 4 and 16 for "1..16*4"; 10, 20, 30
/// and 40 for "10..40+10". At most ten thousand.
std::vector<Index> numbers(const std::string& list);

}  // namespace gridlops::program
