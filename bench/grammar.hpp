// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <CLI/App.hpp>
#include <variant>

#include "arguments.hpp"
#include "option_list.hpp"

namespace gridlops::bench {

using Command = std::variant<MatmulArguments, SolveArguments, CommArguments, KernelArguments>;

/// The subcommands with their options, and the variables that these fill.
class Grammar {
 public:
  Grammar();
  Grammar(const Grammar&) = delete;
  Grammar& operator=(const Grammar&) = delete;

  CLI::App& app() { return app_; }
  /// The subcommand that was given, and what with.
  Command command() const;

 private:
  void define_matmul();
  void define_solve();
  void define_comm();
  void define_kernels();
  static void define_common(program::OptionList& list, Cases& cases, Method& method);

  CLI::App app_;
  MatmulArguments matmul_;
  SolveArguments solve_;
  CommArguments comm_;
  KernelArguments kernels_;
};

}  // namespace gridlops::bench
