// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

/// A fault of one rank, which a test plans by the variable GRIDLOPS_FAULT=RANK:OPERATION:N:KIND. It befalls
/// the N-th operation of this name (N ≥ 1) that the rank begins. Which operations and kinds there are is said
/// where they are carried out: tests/faults/injected.cpp and lost_ranks.cpp, and the emulation of GPUs. Only
/// tests have any.
struct PlannedFault {
  int rank = -1;  ///< in the job; -1: none
  std::string operation, kind;
  long number = 0;

  static PlannedFault from_environment() {
    const char* const variable = std::getenv("GRIDLOPS_FAULT");
    if (variable == nullptr) return {};
    std::array<std::string, 4> words;
    std::string_view rest(variable);
    for (std::string& word : words) {
      word = rest.substr(0, rest.find(':'));
      rest.remove_prefix(rest.size() == word.size() ? rest.size() : word.size() + 1);
    }
    return {std::atoi(words[0].c_str()), words[1], words[3], std::atol(words[2].c_str())};
  }

  /// Counts an operation that this rank begins. Whether the fault befalls it.
  bool befalls(int this_rank, std::string_view begun) {
    return rank == this_rank && operation == begun && --number == 0;
  }
};
