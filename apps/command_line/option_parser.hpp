// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "command_line/option_values.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/communicator.hpp"
#include "gridlops/solve/plan.hpp"

namespace gridlops::program {

/// The values that an option can take, each with its name.
template <class Value>
using Names = std::vector<std::pair<std::string, Value>>;

/// Values whose names the library defines.
template <class Value>
Names<Value> names_of(std::initializer_list<Value> values) {
  Names<Value> names;
  for (const Value& value : values) names.emplace_back(name_of(value), value);
  return names;
}

/// Words that stand for themselves.
Names<std::string> words(const std::vector<std::string>& texts);

/// Solvers; by default those that need only A, B and options.
Names<Solver> solvers(const std::vector<Solver>& among = named_solvers());
Names<ScalarType> scalar_types();
Names<Algorithm> algorithms();
/// "auto" has no value.
Names<std::optional<Storage>> storages();
/// How and where A is to be stored. Without a storage the program chooses one.
struct StoredAs {
  std::optional<Storage> storage{};
  MatrixPlace place = MatrixPlace::memory;
};
/// The names of storages(), for a matrix in memory, and disk_name, which leaves the storage open.
Names<StoredAs> storages_and_disk();
inline constexpr const char* disk_name = "disk";
/// Returns the name in storages_and_disk() for the storage of a planned iteration.
const char* name_of_storage(const PlannedIteration& iteration);
Names<std::optional<bool>> switches();
/// Those of hosts and of GPUs, and "auto".
Names<std::string> transports();

/// The names, with a separator between them.
template <class Value>
std::string joined(const Names<Value>& names, const char* separator) {
  std::string text;
  for (const auto& entry : names) text += (text.empty() ? "" : separator) + entry.first;
  return text;
}

/// "'…' is none of …", and the name that was probably meant.
UsageError unknown_name(const std::string& text, const Names<std::string>& names);

/// Only the names.
template <class Value>
std::vector<std::string> texts(const Names<Value>& names) {
  std::vector<std::string> all;
  for (const auto& entry : names) all.push_back(entry.first);
  return all;
}

/// The value with this name. Throws UsageError if there is none.
template <class Value>
Value value_of(const std::string& text, const Names<Value>& names) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (name == text) return value;
    known.push_back(name);
  }
  throw unknown_name(text, words(known));
}

/// The largest number of a type that an Index can hold.
template <class Whole>
constexpr Index greatest() {
  constexpr Whole most = std::numeric_limits<Whole>::max();
  return std::cmp_less(most, std::numeric_limits<Index>::max()) ? static_cast<Index>(most)
                                                                : std::numeric_limits<Index>::max();
}

/// Describes --tolerance T for these solvers, in the help.
std::string tolerance_text(const std::vector<Solver>& solvers);

/// The options of one subcommand. Each can also come from the environment. The help lists the required ones
/// first, then those of each group.
class Options {
 public:
  explicit Options(CLI::App& subcommand) : app_(subcommand) {}

  /// Puts options that are added from now on under this heading in the help.
  void group(const char* heading) { group_ = heading; }
  /// Command lines for the end of the help.
  void examples(const std::vector<std::string>& lines) { closing("Examples:", lines); }
  /// Lines for the end of the help, under a heading.
  void closing(const char* heading, const std::vector<std::string>& lines);

  CLI::Option* text(const char* name, std::string& value, const char* placeholder, const char* about) {
    return parsed(
        name, [&value](const std::string& text) { value = text; }, placeholder, about);
  }
  /// Words without an option name, at least one.
  void words(const char* placeholder, std::vector<std::string>& values, const char* about) {
    app_.add_option(placeholder, values, about)->required()->type_name("");
  }
  CLI::Option* flag(const char* name, bool& value, const char* about) {
    return added(app_.add_flag(name, value, about));
  }
  template <class Whole>
  CLI::Option* whole(const char* name, Whole& value, const char* placeholder, Index lowest,
                     const char* about) {
    return parsed(
        name,
        [&value, lowest](const std::string& text) {
          value = static_cast<Whole>(whole_number(text, lowest, greatest<Whole>()));
        },
        placeholder, about);
  }
  template <class Number>
  CLI::Option* number(const char* name, Number& value, const char* placeholder, double lowest,
                      const char* about) {
    return parsed(
        name, [&value, lowest](const std::string& text) { value = program::number(text, lowest); },
        placeholder, about);
  }
  template <class Target, class Value>
  CLI::Option* choice(const char* name, Target& value, const Names<Value>& names, const char* about) {
    return parsed(
        name, [&value, names](const std::string& text) { value = value_of(text, names); }, joined(names, "|"),
        about);
  }
  /// A list of whole numbers and ranges, as numbers() reads it.
  CLI::Option* numbers(const char* name, std::vector<Index>& values, const char* placeholder,
                       const char* about) {
    return parsed(
        name, [&values](const std::string& text) { values = program::numbers(text); }, placeholder, about);
  }
  /// A list of choices, separated by commas.
  template <class Value>
  CLI::Option* choices(const char* name, std::vector<Value>& values, const Names<Value>& names,
                       const char* about) {
    return parsed(
        name,
        [&values, names](const std::string& text) {
          values.clear();
          for (const std::string& item : items(text)) values.push_back(value_of(item, names));
        },
        joined(names, "|") + "[,...]", about);
  }
  /// The option of this name, as "--damp"; null if there is none.
  CLI::Option* find(const std::string& name) { return app_.get_option_no_throw(name); }
  /// These exclude each other, or the one needs the other. Both must have been added.
  void exclude(const char* one, const char* other) { find(one)->excludes(find(other)); }
  void need(const char* one, const char* other) { find(one)->needs(find(other)); }
  /// The names of the options that the user gave, as "--damp", on the command line or in the environment.
  std::set<std::string> given() const;
  /// parse takes the option's text. If it throws a UsageError, the message names the option.
  CLI::Option* parsed(const char* name, const std::function<void(const std::string&)>& parse,
                      const std::string& placeholder, const char* about);

 private:
  /// Gives an option its variable and its group.
  CLI::Option* added(CLI::Option* option);

  CLI::App& app_;
  std::string group_;
};

/// The action of a subcommand (collective over world). It returns rank 0's exit status there, and throws on
/// all ranks alike; what one rank throws alone must end the job.
using Action = std::function<ExitStatus(Communicator& world)>;

/// A row of a program's table.
struct Subcommand {
  const char* name;
  const char* about;  ///< one line for the help
  /// Declares the options, and returns the action. The action owns the variables behind the options, which
  /// are the same on all ranks when it runs.
  Action (*define)(Options& options);
};

/// A command line with one level of subcommands.
class CommandLine {
 public:
  /// foreign_variables: what variables GRIDLOPS_… of other programs begin with.
  CommandLine(const char* program, const char* about, const char* footer,
              std::vector<std::string> foreign_variables, const std::vector<Subcommand>& subcommands);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// The help, or the version, if the arguments (without the program's name) ask for one of them.
  std::optional<std::string> requested_text(const std::vector<std::string>& arguments) const;

  /// Sets the variables behind the options from the arguments and the environment, and returns the action of
  /// the given subcommand. Throws UsageError.
  Action parse(const std::vector<std::string>& arguments);

  /// One warning for every variable GRIDLOPS_… that neither an option of this program, nor the library, nor
  /// another program reads.
  std::vector<std::string> unknown_variables() const;

 private:
  void add(const Subcommand& row);

  CLI::App app_;
  std::vector<std::string> foreign_variables_;
  Action action_;
};

/// The names of this process's variables GRIDLOPS_….
std::vector<std::string> gridlops_variables();

/// The body of main(). If the arguments ask for a text, prints it without starting MPI. Otherwise runs the
/// action of the command line on all ranks, with rank 0's arguments and environment, because launchers pass
/// on neither reliably. Rank 0 explains errors; all ranks return the same exit status.
int run_program(int argc, char** argv, CommandLine& command_line);

/// The words of this process's command line, the program first.
const std::vector<std::string>& command_words();

}  // namespace gridlops::program
