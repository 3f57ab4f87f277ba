// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/option_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "gridlops/base/error.hpp"

namespace gridlops::program {

namespace {

template <class Number>
std::optional<Number> parse_all(const std::string& text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

void append_numbers(const std::string& item, std::vector<Index>& numbers) {
  const std::size_t dots = item.find("..");
  const Index first = size_number(item.substr(0, dots), 0);
  if (dots == std::string::npos) return numbers.push_back(first);
  const std::size_t step_at = item.find_first_of("+*", dots);
  const Index last = size_number(item.substr(dots + 2, step_at - dots - 2), 0);
  const bool adds = step_at != std::string::npos && item[step_at] == '+';
  const Index step = step_at == std::string::npos ? 2 : size_number(item.substr(step_at + 1), adds ? 1 : 2);
  if (!adds && first == 0)
    throw UsageError(fmt::format("'{}' doubles from 0 and never ends; add a step, as in 0..8+2", item));
  constexpr std::size_t most = 10000;
  for (Index number = first; number <= last;) {
    if (numbers.size() >= most)
      throw UsageError(fmt::format("'{}' leads to more than {} numbers", item, most));
    numbers.push_back(number);
    if (number > (adds ? last - step : last / step)) break;
    number = adds ? number + step : number * step;
  }
}

}  // namespace

Index whole_number(const std::string& text, Index lowest, Index highest) {
  const auto value = parse_all<Index>(text);
  if (value && *value > highest)
    throw UsageError(fmt::format("'{}' is more than {}, the most that counts", text, highest));
  if (value && *value >= lowest) return *value;
  throw UsageError(fmt::format("'{}' is no whole number from {} on", text, lowest));
}

double number(const std::string& text, double lowest) {
  const auto value = parse_all<double>(text);
  if (value && std::isfinite(*value) && *value >= lowest) return *value;
  throw UsageError(fmt::format("'{}' is no finite number from {} on", text, lowest));
}

std::optional<double> bound_in(const std::string& text) {
  const auto value = parse_all<double>(text);
  if (value && std::isnan(*value)) throw UsageError(fmt::format("'{}' bounds nothing; take a number", text));
  return value;
}

Index size_number(const std::string& text, Index lowest) {
  constexpr std::string_view letters = "KMG";
  const std::size_t letter = text.empty() ? letters.npos : letters.find(text.back());
  if (letter == letters.npos) return whole_number(text, lowest);
  const Index unit = Index{1} << (10 * (letter + 1));
  const Index number = whole_number(text.substr(0, text.size() - 1), 0);
  if (number > std::numeric_limits<Index>::max() / unit || number * unit < lowest)
    throw UsageError(
        fmt::format("'{}' is no number from {} to {}", text, lowest, std::numeric_limits<Index>::max()));
  return number * unit;
}

std::vector<std::string> items(const std::string& list) {
  std::vector<std::string> found;
  std::size_t begin = 0;
  for (std::size_t comma = list.find(','); comma != std::string::npos; comma = list.find(',', begin)) {
    found.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  found.push_back(list.substr(begin));
  return found;
}

std::vector<Index> numbers(const std::string& list) {
  std::vector<Index> numbers;
  for (const std::string& item : items(list)) append_numbers(item, numbers);
  return numbers;
}

}  // namespace gridlops::program
