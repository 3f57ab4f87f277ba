// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "grammar.hpp"
#include "gridlops/error.hpp"
#include "invocation.hpp"
#include "option_list.hpp"
#include "text_checks.hpp"
#include "versions.hpp"

namespace gridlops::program {

namespace {

using Texts = std::vector<std::string>;

Texts subcommand_names(const CLI::App& app) {
  Texts names;
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(subcommand->get_name());
  return names;
}

Texts option_names(const CLI::App& app) {
  Texts names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string where_to_read(const CLI::App* subcommand) {
  return fmt::format("; see gridlops {}--help", subcommand == nullptr ? "" : subcommand->get_name() + " ");
}

/// What no option and no subcommand has taken.
std::string unknown_text(const CLI::App& app, const CLI::App* subcommand, const std::string& text) {
  const std::string word = text.substr(0, text.find('='));
  const bool is_option = word.rfind('-', 0) == 0;
  if (subcommand == nullptr) {
    return is_option
               ? fmt::format("there is no option '{}' before a subcommand{}", word,
                             suggestion(word, option_names(app)))
               : fmt::format("there is no subcommand '{}', but {}{}", word,
                             joined(subcommand_names(app), ", "), suggestion(word, subcommand_names(app)));
  }
  if (is_option) {
    return fmt::format("{} has no option '{}'{}", subcommand->get_name(), word,
                       suggestion(word, option_names(*subcommand)));
  }
  return fmt::format("{}: what is '{}' for? Values follow an option", subcommand->get_name(), text);
}

/// "… (in the environment variable …)" if the option that the error is about was not on the command line.
std::string origin_text(const CLI::App* subcommand, const std::string& error, const Texts& arguments) {
  if (subcommand == nullptr) return {};
  for (const CLI::Option* option : subcommand->get_options()) {
    const std::string name = option->get_name();
    const bool meant = error.rfind(name + ":", 0) == 0;
    const bool given = std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
      return argument == name || argument.rfind(name + "=", 0) == 0;
    });
    if (meant && !given && std::getenv(option->get_envname().c_str()) != nullptr)
      return fmt::format(" (in the environment variable {})", option->get_envname());
  }
  return {};
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// Throws UsageError unless the texts make sense together.
void parse(Grammar& grammar, const Texts& arguments) {
  std::string problem;
  try {
    Texts reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants it
    grammar.app().parse(reversed);
  } catch (const CLI::ParseError& error) {
    problem = error.what();
  }
  const CLI::App* const subcommand = grammar.subcommand();
  // What is unknown comes first: it is often the reason for what is missing.
  const Texts unknown = grammar.app().remaining(true);
  if (!unknown.empty()) {
    throw UsageError(one_line(unknown_text(grammar.app(), subcommand, unknown.front())) +
                     where_to_read(subcommand));
  }
  if (!problem.empty()) {
    const std::string whose = subcommand == nullptr ? "" : subcommand->get_name() + " ";
    throw UsageError(one_line(whose + problem) + origin_text(subcommand, problem, arguments) +
                     where_to_read(subcommand));
  }
  if (subcommand == nullptr) {
    throw UsageError(fmt::format("a subcommand is missing: {}{}",
                                 joined(subcommand_names(grammar.app()), ", "), where_to_read(nullptr)));
  }
}

/// One warning for every variable that looks like one of ours and is none.
Texts unknown_variables(const CLI::App& subcommand) {
  Texts known, warnings;
  for (const CLI::Option* option : subcommand.get_options()) known.push_back(option->get_envname());
  for (const std::string& name : environment_names(environment_name(subcommand.get_name(), ""))) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      warnings.push_back(fmt::format("the environment variable {} stands for no option of {}{}", name,
                                     subcommand.get_name(), suggestion(name, known)));
    }
  }
  return warnings;
}

}  // namespace

std::optional<std::string> requested_text(const Texts& arguments) {
  const auto given = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  if (given("--help") || given("-h")) {
    Grammar grammar;
    for (const std::string& name : subcommand_names(grammar.app()))
      if (given(name.c_str())) return grammar.app().get_subcommand(name)->help("gridlops");
    return grammar.app().help();
  }
  if (given("--version")) return version_text() + "\n";
  return std::nullopt;
}

CommandLine parse_command_line(const Texts& arguments) {
  Grammar grammar;
  parse(grammar, arguments);
  return {grammar.command(), unknown_variables(*grammar.subcommand())};
}

}  // namespace gridlops::program
