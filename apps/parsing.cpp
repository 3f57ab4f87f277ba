// SPDX-License-Identifier: BSD-3-Clause
#include "parsing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "gridlops/error.hpp"
#include "invocation.hpp"
#include "text_checks.hpp"
#include "versions.hpp"
#include "vocabulary.hpp"

namespace gridlops::program {

const CLI::App* subcommand_given(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? nullptr : given.front();
}

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

std::string where_to_read(const CLI::App& app) {
  const CLI::App* const subcommand = subcommand_given(app);
  return fmt::format("; see {} {}--help", app.get_name(),
                     subcommand == nullptr ? "" : subcommand->get_name() + " ");
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

}  // namespace

void complete(CLI::App& app) {
  const char* about_version = "What this program and its libraries are";
  app.formatter(std::make_shared<HelpFormat>());
  app.require_subcommand(0, 1);
  app.set_version_flag("--version", version_text, about_version);
  for (CLI::App* subcommand : app.get_subcommands({})) {
    subcommand->formatter(app.get_formatter());
    subcommand->set_version_flag("--version", version_text, about_version);
    subcommand->footer(fmt::format("Every --long-option can be given in the environment, too, as {}.",
                                   environment_name(*subcommand, "long-option")));
  }
}

std::optional<std::string> requested_text(const CLI::App& app, const Texts& arguments) {
  const auto given = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  if (given("--help") || given("-h")) {
    for (const std::string& name : subcommand_names(app))
      if (given(name.c_str())) return app.get_subcommand(name)->help(app.get_name());
    return app.help();
  }
  if (given("--version")) return version_text() + "\n";
  return std::nullopt;
}

void parse(CLI::App& app, const Texts& arguments) {
  std::string problem;
  try {
    Texts reversed(arguments.rbegin(), arguments.rend());  // as CLI11 wants it
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    problem = error.what();
  }
  const CLI::App* const subcommand = subcommand_given(app);
  // What is unknown comes first: it is often the reason for what is missing.
  const Texts unknown = app.remaining(true);
  if (!unknown.empty()) {
    throw UsageError(one_line(unknown_text(app, subcommand, unknown.front())) + where_to_read(app));
  }
  if (!problem.empty()) {
    const std::string whose = subcommand == nullptr ? "" : subcommand->get_name() + " ";
    throw UsageError(one_line(whose + problem) + origin_text(subcommand, problem, arguments) +
                     where_to_read(app));
  }
  if (subcommand == nullptr) {
    throw UsageError(fmt::format("a subcommand is missing: {}{}", joined(subcommand_names(app), ", "),
                                 where_to_read(app)));
  }
}

Texts unknown_variables(const CLI::App& app, const Texts& foreign) {
  Texts known{"GRIDLOPS_DEVICE_MPI", "GRIDLOPS_KERNELS", "GRIDLOPS_TIMEOUT"};  // what the library reads
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    for (const CLI::Option* option : subcommand->get_options()) known.push_back(option->get_envname());
  Texts others{"GRIDLOPS_EMULATION_", "GRIDLOPS_TEST_"};
  others.insert(others.end(), foreign.begin(), foreign.end());
  Texts warnings;
  for (const std::string& name : environment_names("GRIDLOPS_")) {
    const bool is_foreign = std::any_of(others.begin(), others.end(),
                                        [&](const std::string& begin) { return name.rfind(begin, 0) == 0; });
    if (is_foreign || std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(fmt::format("the environment variable {} means nothing to {}{}", name, app.get_name(),
                                   suggestion(name, known)));
  }
  return warnings;
}

}  // namespace gridlops::program
