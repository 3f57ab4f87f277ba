// SPDX-License-Identifier: BSD-3-Clause
#include "lists.hpp"

#include <fmt/format.h>

#include "text_checks.hpp"

namespace gridlops::bench {

namespace {

using program::whole_number;
using program::whole_number_problem;

/// The texts of one item: first, last and step of a range; the last two are empty for a number, the step is
/// for doubling.
struct RangeTexts {
  std::string first, last, step;
};

RangeTexts range_texts(const std::string& item) {
  const std::size_t dots = item.find("..");
  if (dots == std::string::npos) return {item, "", ""};
  const std::string rest = item.substr(dots + 2);
  const std::size_t plus = rest.find('+');
  if (plus == std::string::npos) return {item.substr(0, dots), rest, ""};
  return {item.substr(0, dots), rest.substr(0, plus), rest.substr(plus)};
}

std::string item_problem(const std::string& item, Index lowest) {
  const RangeTexts texts = range_texts(item);
  if (std::string problem = whole_number_problem(texts.first, lowest); !problem.empty()) return problem;
  if (item.find("..") == std::string::npos) return {};
  if (std::string problem = whole_number_problem(texts.last, lowest); !problem.empty()) return problem;
  if (!texts.step.empty()) return whole_number_problem(texts.step.substr(1), 1);
  if (whole_number(texts.first) > 0) return {};
  return fmt::format("'{}' doubles from 0 and never ends; add a step, as in 0..8+2", item);
}

}  // namespace

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

std::string list_problem(const std::string& list,
                         const std::function<std::string(const std::string&)>& problem_of) {
  for (const std::string& item : items(list))
    if (std::string problem = problem_of(item); !problem.empty()) return problem;
  return {};
}

std::string numbers_problem(const std::string& list, Index lowest) {
  return list_problem(list, [lowest](const std::string& item) { return item_problem(item, lowest); });
}

std::vector<Index> numbers(const std::string& list) {
  std::vector<Index> values;
  for (const std::string& item : items(list)) {
    const RangeTexts texts = range_texts(item);
    const Index first = whole_number(texts.first);
    const Index last = texts.last.empty() ? first : whole_number(texts.last);
    const Index step = texts.step.empty() ? 0 : whole_number(texts.step.substr(1));
    for (Index value = first; value <= last; value = step == 0 ? 2 * value : value + step) {
      values.push_back(value);
      if (texts.last.empty()) break;
    }
  }
  return values;
}

}  // namespace gridlops::bench
