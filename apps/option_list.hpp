// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "text_checks.hpp"

namespace gridlops::program {

/// GRIDLOPS_SOLVE_DAMP_RELATIVE for "damp-relative" of solve in gridlops, GRIDLOPS_BENCH_SOLVE_ROWS for
/// "rows" of solve in gridlops-bench.
std::string environment_name(const CLI::App& subcommand, const std::string& option);

template <class Value>
using Names = std::vector<std::pair<std::string, Value>>;

/// Fills in one subcommand's options. All can also come from the environment. A text that an option cannot
/// take is refused with what is wrong, and what may have been meant.
class OptionList {
 public:
  explicit OptionList(CLI::App& app) : app_(app) {}

  CLI::Option* text(const char* name, std::string& value, const char* placeholder, const char* about) {
    return dress(app_.add_option(name, value, about), placeholder);
  }
  CLI::Option* flag(const char* name, bool& value, const char* about) {
    return dress(app_.add_flag(name, value, about), "");
  }
  template <class Whole>
  CLI::Option* whole(const char* name, Whole& value, const char* placeholder, Index lowest,
                     const char* about) {
    return converted(
        name, [&value](const std::string& text) { value = static_cast<Whole>(whole_number(text)); },
        [lowest](const std::string& text) { return whole_number_problem(text, lowest); }, placeholder, about);
  }
  template <class Number>
  CLI::Option* number(const char* name, Number& value, const char* placeholder, double lowest,
                      const char* about) {
    return converted(
        name, [&value](const std::string& text) { value = gridlops::program::number(text); },
        [lowest](const std::string& text) { return number_problem(text, lowest); }, placeholder, about);
  }
  CLI::Option* choice(const char* name, std::string& value, const std::vector<std::string>& words,
                      const char* about) {
    return converted(
        name, [&value](const std::string& text) { value = text; },
        [words](const std::string& text) { return choice_problem(text, words); }, joined(words, "|"), about);
  }
  /// A word that stands for a value.
  template <class Target, class Value>
  CLI::Option* choice(const char* name, Target& target, const Names<Value>& names, const char* about) {
    std::vector<std::string> words;
    for (const auto& entry : names) words.push_back(entry.first);
    return converted(
        name,
        [&target, names](const std::string& text) {
          for (const auto& entry : names)
            if (entry.first == text) target = entry.second;
        },
        [words](const std::string& text) { return choice_problem(text, words); }, joined(words, "|"), about);
  }
  /// take is called with a text for which problem has found nothing wrong.
  CLI::Option* converted(const char* name, const std::function<void(const std::string&)>& take,
                         const std::function<std::string(const std::string&)>& problem,
                         const std::string& placeholder, const char* about) {
    return dress(app_.add_option_function<std::string>(name, take, about), placeholder)
        ->check(CLI::Validator(problem, std::string()));
  }

 private:
  CLI::Option* dress(CLI::Option* option, const std::string& placeholder) {
    option->envname(environment_name(app_, option->get_lnames()[0]));
    return placeholder.empty() ? option : option->type_name(placeholder);
  }

  CLI::App& app_;
};

}  // namespace gridlops::program
