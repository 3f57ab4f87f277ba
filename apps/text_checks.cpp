// SPDX-License-Identifier: BSD-3-Clause
#include "text_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gridlops::program {

namespace {

template <class Number>
bool parse_all(const std::string& text, Number& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

/// Insertions, deletions, replacements and swaps of neighbours that lead from a to b (Damerau: A technique
/// for computer detection and correction of spelling errors, CACM 7, 1964).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> distance(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        distance[i][j] = i + j;
        continue;
      }
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1,
                                 distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

std::string whole_number_problem(const std::string& text, Index lowest) {
  Index value = 0;
  if (parse_all(text, value) && value >= lowest) return {};
  return fmt::format("'{}' is no whole number from {} on", text, lowest);
}

std::string number_problem(const std::string& text, double lowest) {
  double value = 0;
  if (parse_all(text, value) && std::isfinite(value) && value >= lowest) return {};
  return fmt::format("'{}' is no finite number from {} on", text, lowest);
}

Index whole_number(const std::string& text) {
  Index value = 0;
  parse_all(text, value);
  return value;
}

double number(const std::string& text) {
  double value = 0;
  parse_all(text, value);
  return value;
}

std::string choice_problem(const std::string& text, const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return {};
  return fmt::format("'{}' is none of {}{}", text, joined(choices, ", "), suggestion(text, choices));
}

std::string suggestion(const std::string& text, const std::vector<std::string>& candidates) {
  const std::string* nearest = nullptr;
  std::size_t least = std::max<std::size_t>(1, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const bool begun = text.size() > 2 && candidate.rfind(text, 0) == 0;
    const std::size_t distance = begun ? 0 : edit_distance(text, candidate);
    if (distance < least) {
      least = distance;
      nearest = &candidate;
    }
  }
  return nearest == nullptr ? std::string() : fmt::format("; did you mean '{}'?", *nearest);
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace gridlops::program
