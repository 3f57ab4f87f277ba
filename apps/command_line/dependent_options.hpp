// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "command_line/option_parser.hpp"
#include "gridlops/solve/plan.hpp"

namespace gridlops::program {

/// Adds the options with this heading in the library's table, unless they have been added already.
void define_table_options(Options& options, const char* group, SolveOptions& values);

/// Options that apply only to some values of one other option, such as --conlim with --solver lsqr or lsmr.
/// Their help says so. With any other value they are refused.
class DependentOptions {
 public:
  /// decides: the option on which they depend, such as "--solver". It must outlive this object.
  explicit DependentOptions(const char* decides) : decides_(decides) {}

  CLI::Option* only(const std::vector<std::string>& values, CLI::Option* option);
  /// The same for all options that the library's table has for some solvers only. `decides` is "--solver".
  void follow_solver_table(Options& options);

  /// Throws UsageError if a given option does not apply to this value.
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
