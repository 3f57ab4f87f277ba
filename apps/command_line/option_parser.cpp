// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/option_parser.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "command_line/console.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/solve/solver_table.hpp"

namespace gridlops::program {

namespace {

using Texts = std::vector<std::string>;

/// The number of insertions, deletions, replacements and swaps of neighbours that lead from a to b (Damerau:
/// A technique for computer detection and correction of spelling errors, CACM 7, 1964).
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

/// "; did you mean '…'?" with the candidate closest to the text; empty if none is close enough.
std::string suggestion(const std::string& text, const Texts& candidates) {
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

/// The variable of an option: GRIDLOPS_SOLVE_DAMP_RELATIVE for "damp-relative" of solve in gridlops,
/// GRIDLOPS_BENCH_SOLVE_ROWS for "rows" of solve in gridlops-bench.
std::string variable_name(const CLI::App& subcommand, const std::string& option) {
  std::string name = subcommand.get_parent()->get_name() + "-" + subcommand.get_name() + "-" + option;
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  });
  return name;
}

constexpr std::size_t help_width = 100, help_margin = 28;

/// The text in lines that fit beside the margin of the help.
std::string wrapped(const std::string& text) {
  std::string lines;
  std::size_t length = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const bool fits = length + 1 + end - begin <= help_width - help_margin;
    if (begin > 0) lines += fits ? ' ' : '\n';
    length = (fits && begin > 0 ? length + 1 : 0) + end - begin;
    lines.append(text, begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

/// Shows placeholders only, because the variables' names would fill half of the help. Required options come
/// first; those without a group, such as --help, come last.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(help_margin); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? std::string() : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description());
  }
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return make_description(app) + make_usage(app, std::move(name)) + options_of(app) +
           make_subcommands(app, mode) + "\n" + make_footer(app);
  }

 private:
  std::string options_of(const CLI::App* app) const {
    std::vector<std::pair<std::string, std::vector<const CLI::Option*>>> groups{{"Required", {}}};
    for (const std::string& heading : app->get_groups()) groups.emplace_back(heading, 0);
    std::rotate(groups.begin() + 1, groups.begin() + 2, groups.end());  // the first is that of --help
    for (const CLI::Option* option : app->get_options()) {
      const std::string heading = option->get_required() ? "Required" : option->get_group();
      for (auto& [group, options] : groups)
        if (group == heading) options.push_back(option);
    }
    std::string text;
    for (const auto& [group, options] : groups)
      if (!options.empty()) text += make_group(group, false, options);
    return text;
  }
};

void add_version(CLI::App& app) {
  app.set_version_flag("--version", version_text, "What this program and its libraries are");
}

const CLI::App* subcommand_given(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? nullptr : given.front();
}

auto subcommands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

Texts subcommand_names(const CLI::App& app) {
  Texts names;
  for (const CLI::App* subcommand : subcommands(app)) names.push_back(subcommand->get_name());
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

/// Says what is wrong with a text that matches no option and no subcommand.
std::string unknown_text(const CLI::App& app, const CLI::App* subcommand, const std::string& text) {
  const std::string word = text.substr(0, text.find('='));
  const bool is_option = word.rfind('-', 0) == 0;
  if (subcommand == nullptr) {
    return is_option ? fmt::format("there is no option '{}' before a subcommand{}", word,
                                   suggestion(word, option_names(app)))
                     : fmt::format("there is no subcommand '{}', but {}{}", word,
                                   joined(words(subcommand_names(app)), ", "),
                                   suggestion(word, subcommand_names(app)));
  }
  if (is_option) {
    return fmt::format("{} has no option '{}'{}", subcommand->get_name(), word,
                       suggestion(word, option_names(*subcommand)));
  }
  return fmt::format("{}: what is '{}' for? Values follow an option", subcommand->get_name(), text);
}

/// "… (in the environment variable …)" if the option in the error was not on the command line.
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

/// "--rhs, --output are required", listing all that are missing; empty if none is.
std::string missing_options(const CLI::App* subcommand) {
  if (subcommand == nullptr) return {};
  Texts missing;
  for (const CLI::Option* option : subcommand->get_options())
    if (option->get_required() && option->count() == 0) missing.push_back(option->get_name());
  return missing.empty() ? ""
                         : fmt::format("{} {} required", joined(words(missing), ", "),
                                       missing.size() == 1 ? "is" : "are");
}

std::string one_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

Names<std::string> words(const Texts& texts) {
  Names<std::string> names;
  for (const std::string& text : texts) names.emplace_back(text, text);
  return names;
}

UsageError unknown_name(const std::string& text, const Names<std::string>& names) {
  Texts known;
  for (const auto& entry : names) known.push_back(entry.first);
  return UsageError(fmt::format("'{}' is none of {}{}", text, joined(names, ", "), suggestion(text, known)));
}

Names<Solver> solvers(const std::vector<Solver>& among) {
  Names<Solver> names;
  for (const Solver solver : among) names.emplace_back(name_of(solver), solver);
  return names;
}

Names<ScalarType> scalar_types() {
  return names_of({ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128});
}

Names<Algorithm> algorithms() {
  return names_of({Algorithm::automatic, Algorithm::block, Algorithm::summa, Algorithm::stationary_a,
                   Algorithm::stationary_b});
}

Names<std::optional<Storage>> storages() {
  Names<std::optional<Storage>> names{{"auto", std::nullopt}};
  for (const StorageRow& row : storage_table) names.emplace_back(row.name, row.storage);
  return names;
}

Names<StoredAs> storages_and_disk() {
  Names<StoredAs> names;
  for (const auto& [name, storage] : storages()) names.emplace_back(name, StoredAs{storage});
  names.emplace_back(disk_name, StoredAs{.place = MatrixPlace::disk});
  return names;
}

const char* name_of_storage(const PlannedIteration& iteration) {
  return iteration.place == MatrixPlace::disk ? disk_name : name_of(iteration.storage);
}

Names<std::optional<bool>> switches() { return {{"auto", std::nullopt}, {"on", true}, {"off", false}}; }

Names<std::string> transports() {
  Names<std::string> names{{"auto", "auto"}};
  for (const auto& name : words(host_transports())) names.push_back(name);
  names.emplace_back("nccl", "nccl");
  return names;
}

std::string tolerance_text(const std::vector<Solver>& solvers) {
  std::string text = "A column has converged when,";
  const char* separator = "";
  using enum ToleranceTest;
  for (const ToleranceTest test : {gradient, projected_gradient, backward_error, residual, own}) {
    std::vector<Solver> named;
    for (const Solver solver : solvers)
      if (row_of(solver).test == test) named.push_back(solver);
    if (named.empty()) continue;
    text += fmt::format("{} with {}: {}", separator, gridlops::names_of(named), formula_of(test));
    separator = ";";
  }
  return text;
}

CLI::Option* Options::parsed(const char* name, const std::function<void(const std::string&)>& parse,
                             const std::string& placeholder, const char* about) {
  const auto take = [name = std::string(name), parse](const std::string& text) {
    try {
      parse(text);
    } catch (const UsageError& error) {
      throw CLI::ValidationError(name, error.what());
    }
  };
  return added(app_.add_option_function<std::string>(name, take, about))->type_name(placeholder);
}

CLI::Option* Options::added(CLI::Option* option) {
  if (!group_.empty()) option->group(group_);
  return option->envname(variable_name(app_, option->get_lnames()[0]));
}

std::set<std::string> Options::given() const {
  std::set<std::string> names;
  for (const CLI::Option* option : app_.get_options())
    if (option->count() > 0) names.insert(option->get_name());
  return names;
}

void Options::closing(const char* heading, const Texts& lines) {
  std::string text = fmt::format("{}\n", heading);
  for (const std::string& line : lines) text += fmt::format("  {}\n", line);
  app_.footer(text + "\n" + app_.get_footer());
}

CommandLine::CommandLine(const char* program, const char* about, const char* footer, Texts foreign_variables,
                         const std::vector<Subcommand>& subcommands)
    : app_(about, program), foreign_variables_(std::move(foreign_variables)) {
  app_.formatter(std::make_shared<HelpFormat>());
  app_.footer(footer);
  app_.require_subcommand(0, 1);
  add_version(app_);
  for (const Subcommand& row : subcommands) add(row);
}

void CommandLine::add(const Subcommand& row) {
  CLI::App& subcommand = *app_.add_subcommand(row.name, row.about);
  subcommand.formatter(app_.get_formatter());
  subcommand.footer(fmt::format("Every --long-option can be given in the environment, too, as {}.",
                                variable_name(subcommand, "long-option")));
  add_version(subcommand);
  Options options(subcommand);
  subcommand.final_callback([this, action = row.define(options)] { action_ = action; });
}

std::optional<std::string> CommandLine::requested_text(const Texts& arguments) const {
  const auto given = [&](const char* word) {
    return std::find(arguments.begin(), arguments.end(), word) != arguments.end();
  };
  if (given("--help") || given("-h")) {
    for (const CLI::App* subcommand : subcommands(app_))
      if (given(subcommand->get_name().c_str())) return subcommand->help(app_.get_name());
    return app_.help();
  }
  if (given("--version")) return version_text() + "\n";
  return std::nullopt;
}

Action CommandLine::parse(const Texts& arguments) {
  std::string problem;
  try {
    Texts reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes arguments from the end
    app_.parse(reversed);
  } catch (const CLI::ParseError& error) {
    problem = error.what();
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
      if (const std::string missing = missing_options(subcommand_given(app_)); !missing.empty())
        problem = missing;
  }
  const CLI::App* const subcommand = subcommand_given(app_);
  // Reports an unknown option first, because it is often the reason for a missing one.
  const Texts unknown = app_.remaining(true);
  if (!unknown.empty()) {
    throw UsageError(one_line(unknown_text(app_, subcommand, unknown.front())) + where_to_read(app_));
  }
  if (!problem.empty()) {
    const std::string whose = subcommand == nullptr ? "" : subcommand->get_name() + " ";
    throw UsageError(one_line(whose + problem) + origin_text(subcommand, problem, arguments) +
                     where_to_read(app_));
  }
  if (subcommand == nullptr) {
    throw UsageError(fmt::format("a subcommand is missing: {}{}", joined(words(subcommand_names(app_)), ", "),
                                 where_to_read(app_)));
  }
  return action_;
}

std::vector<std::string> CommandLine::unknown_variables() const {
  Texts known{"GRIDLOPS_CALIBRATION", "GRIDLOPS_CHECK",   "GRIDLOPS_DEVICE_MPI", "GRIDLOPS_KERNELS",
              "GRIDLOPS_THREADS",     "GRIDLOPS_TIMEOUT", "GRIDLOPS_TRACE"};  // which are no options
  for (const CLI::App* subcommand : subcommands(app_))
    for (const CLI::Option* option : subcommand->get_options()) known.push_back(option->get_envname());
  Texts foreign{"GRIDLOPS_EMULATION_", "GRIDLOPS_FAULT", "GRIDLOPS_TEST_"};
  foreign.insert(foreign.end(), foreign_variables_.begin(), foreign_variables_.end());
  Texts warnings;
  for (const std::string& name : gridlops_variables()) {
    const bool is_foreign = std::any_of(foreign.begin(), foreign.end(),
                                        [&](const std::string& begin) { return name.rfind(begin, 0) == 0; });
    if (is_foreign || std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(fmt::format("the environment variable {} means nothing to {}{}", name, app_.get_name(),
                                   suggestion(name, known)));
  }
  return warnings;
}

std::vector<std::string> gridlops_variables() {
  constexpr std::string_view prefix = "GRIDLOPS_";
  Texts names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.substr(0, prefix.size()) == prefix) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

}  // namespace gridlops::program
