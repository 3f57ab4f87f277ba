// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

/// A fault of one rank, which a test plans by the variable GRIDLOPS_FAULT=RANK:OPERATION:N:KIND. It strikes
/// the N-th operation of this name (N ≥ 1) that the rank begins. docs/faults.md lists the operations and the
/// kinds, and says who carries them out. Only tests have faults. A malformed text ends the process with
/// status 2, because a test could otherwise pass without any fault.
struct PlannedFault {
  static constexpr std::array kinds{"kill",   "stop",   "term", "throw", "slow", "nan",   "flip",   "short",
                                    "differ", "enospc", "fail", "skip",  "work", "block", "suspend"};

  int rank = -1;  ///< in the job; -1: none
  std::string operation, kind;
  long number = 0;

  static PlannedFault from_environment() {
    const char* const variable = std::getenv("GRIDLOPS_FAULT");
    return variable == nullptr ? PlannedFault() : parsed(variable);
  }

  static PlannedFault parsed(std::string_view text) {
    std::array<std::string, 4> words;
    std::string_view rest(text);
    for (std::string& word : words) {
      word = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    }
    const auto is_number = [](const std::string& word) {
      return !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    };
    const bool is_kind =
        std::find(kinds.begin(), kinds.end(), words[3]) != kinds.end() || is_number(words[3]);
    if (!is_number(words[0]) || words[1].empty() || !is_number(words[2]) || !is_kind || !rest.empty()) {
      std::fprintf(stderr, "GRIDLOPS_FAULT is '%.*s', not RANK:OPERATION:N:KIND (docs/faults.md)\n",
                   static_cast<int>(text.size()), text.data());
      _exit(2);
    }
    return {std::atoi(words[0].c_str()), words[1], words[3], std::atol(words[2].c_str())};
  }

  /// Counts an operation that this rank begins, and returns whether the fault strikes it.
  bool befalls(int this_rank, std::string_view begun) {
    return rank == this_rank && operation == begun && --number == 0;
  }

  /// Carries out the kinds that do not depend on the operation: kill, stop, term, slow and throw. The
  /// operation itself carries out all other kinds.
  void befall_process() const {
    if (kind == "kill") raise(SIGKILL);
    if (kind == "stop") raise(SIGSTOP);
    if (kind == "term") raise(SIGTERM);
    if (kind == "slow") sleep(1);
    if (kind == "throw") throw std::runtime_error("a fault that was asked for");
  }
};
