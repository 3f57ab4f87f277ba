// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/solve/plan.hpp"
#include "gridlops/solve/solve_options.hpp"

namespace gridlops::program {

// Rows of tables of options, and which of them go together.

/// Adds the option of a row with this heading, unless it has been added already, or its type has a syntax of
/// its own.
template <class Value>
void define_row(Options& options, const char* group, const SolverOption& row, Value& value) {
  if (row.name == nullptr || std::string_view(row.group) != group) return;
  const std::string name = "--" + std::string(row.name);
  if (options.find(name) != nullptr) return;
  if constexpr (std::is_same_v<Value, bool>) {
    options.flag(name.c_str(), value, row.help);
  } else if constexpr (std::is_same_v<Value, Index>) {
    options.whole(name.c_str(), value, row.placeholder, 0, row.help);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    options.text(name.c_str(), value, row.placeholder, row.help);
  } else if constexpr (std::is_same_v<Value, Threshold>) {
    options.choice(name.c_str(), value, names_of({Threshold::soft, Threshold::hard, Threshold::half}),
                   row.help);
  } else if constexpr (std::is_assignable_v<Value&, double>) {
    options.number(name.c_str(), value, row.placeholder, 0, row.help);
  }
}

/// Whether this algorithm is asked for, or left open.
inline bool may_be(Algorithm asked, Algorithm algorithm) {
  return asked == Algorithm::automatic || asked == algorithm;
}

/// A rule that arguments break by themselves, whatever files and machines have.
struct Rule {
  bool is_broken = false;
  std::string text;  ///< says why that is refused
};

/// An option, perhaps with a value, and whether it is asked for.
struct Asked {
  std::string option;
  bool is_so = false;
};
/// These exclude each other. why: the end of the text; may be empty.
Rule exclude(const Asked& one, const Asked& other, const std::string& why = {});

/// Throws UsageError with the text of the first rule that is broken.
void check_rules(const std::vector<Rule>& rules);

/// Options that apply only to some values of one other option, such as --conlim with --solver lsqr or lsmr.
/// Their help says so.
class DependentOptions {
 public:
  /// decides: the option on which they depend, such as "--solver". It must outlive this object.
  explicit DependentOptions(const char* decides) : decides_(decides) {}

  void only(const std::vector<std::string>& values, CLI::Option* option);
  /// The same for all options that a table has for some solvers only. `decides` is "--solver".
  void follow_table(Options& options, const std::vector<SolverOption>& table);

  /// Returns the rules that options which do not apply to this value must not be given.
  std::vector<Rule> rules(const std::string& value) const;

 private:
  const char* decides_;
  std::vector<std::pair<const CLI::Option*, std::vector<std::string>>> entries_;
};

/// Returns the rules for the algorithm, the passes and the storage that are asked for.
std::vector<Rule> rules_of(const IterationRequest& asked);

/// Says in words what the solver has against matrices of this shape; empty if nothing.
std::string shape_refusal(Solver solver, Index rows, Index cols);

}  // namespace gridlops::program
