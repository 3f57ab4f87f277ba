// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cstdlib>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

// The variables GRIDLOPS_… of the environment. Each is read by one function, next to what it decides. A
// session calls all these functions at its beginning, on all ranks together (mpi_session.cpp), so that a
// wrong value is one error before anything is done.

/// The text of a variable; empty without it.
inline std::string variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// The number in a variable, from `least` to `most`; `usual` without it, or if it is empty. Throws UsageError
/// for any other text; `allowed` says in the message what it must be.
template <class Number>
Number number_in(const char* name, Number usual, Number least, Number most, const char* allowed) {
  const std::string text = variable(name);
  if (text.empty()) return usual;
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  require<UsageError>(error == std::errc() && stopped == end && number >= least && number <= most, name,
                      " is '", text, "'; it must be ", allowed);
  return number;
}

/// The words that a variable may have; the first is meant without the variable, or if it is empty.
template <class Value>
using Words = std::vector<std::pair<std::string, Value>>;

/// The value of one of these words. Throws UsageError for any other text.
template <class Value>
Value value_of(const char* name, const std::string& text, const Words<Value>& words) {
  if (text.empty()) return words.front().second;
  for (const auto& [word, value] : words)
    if (word == text) return value;
  std::string allowed = words.front().first;
  for (std::size_t k = 1; k < words.size(); ++k)
    allowed += (k + 1 < words.size() ? ", " : " or ") + words[k].first;
  throw UsageError(message(name, " is '", text, "'; it must be ", allowed));
}

/// The value of the word in a variable.
template <class Value>
Value word_in(const char* name, const Words<Value>& words) {
  return value_of(name, variable(name), words);
}

}  // namespace gridlops
