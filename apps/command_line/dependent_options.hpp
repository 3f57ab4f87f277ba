// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/solve/plan.hpp"

namespace gridlops::program {

/// Adds the options of the library's table that have this heading, unless they are there already.
void define_table_options(Options& options, const char* group, SolveOptions& values);

/// Options that mean something only with some values of one other option, such as --conlim with --solver lsqr
/// or lsmr. Their help says so, and the others refuse them.
class DependentOptions {
 public:
  /// decides: the option that their use depends on, as "--solver". It must outlive this.
  explicit DependentOptions(const char* decides) : decides_(decides) {}

  CLI::Option* only(const std::vector<std::string>& values, CLI::Option* option);
  /// The same for all options that the library's table has for some solvers only. `decides` is "--solver".
  void follow_solver_table(Options& options);

  /// Throws UsageError if an option was given that means nothing to this value.
  void check(const std::string& value) const;

 private:
  struct Entry {
    const CLI::Option* option;
    std::vector<std::string> values;
  };
  const char* decides_;
  std::vector<Entry> entries_;
};

/// Throws UsageError if these exclude each other.
void require_compatible(const IterationRequest& asked);

/// Says in words what the solver has against matrices of this shape; empty if nothing.
std::string shape_refusal(Solver solver, Index rows, Index cols);

}  // namespace gridlops::program
