// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>

#include "arguments.hpp"

namespace gridlops::program {

class OptionList;

/// All subcommands with their options, and the variables that these fill.
class Grammar {
 public:
  Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  CLI::App& app() { return app_; }
  /// The subcommand that was given, and what with.
  Command command() const;

 private:
  void define_make_problem();
  void define_multiply();
  void define_solve();
  static void define_product(OptionList& list, ProductArguments& product);

  CLI::App app_;
  MakeProblemArguments make_problem_;
  MultiplyArguments multiply_;
  SolveArguments solve_;
};

}  // namespace gridlops::program
