// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>

#include "support/agreed_failures.hpp"

namespace gridlops::testing {

/// "NAME: VALUE on ranks …, ODD on rank …" for one rank with another value than all others.
inline std::string difference(const std::string& name, const std::string& value, const std::string& odd,
                              int odd_rank, int ranks) {
  const auto text = [](int first, int last) {
    if (first == last) return std::to_string(first);
    return std::to_string(first) + (last == first + 1 ? ", " : " to ") + std::to_string(last);
  };
  const std::string alone = odd + " on rank " + std::to_string(odd_rank);
  const std::string word = ranks == 2 ? " on rank " : " on ranks ";
  if (odd_rank == 0) return name + ": " + alone + ", " + value + word + text(1, ranks - 1);
  std::string others = text(0, odd_rank - 1);
  if (odd_rank < ranks - 1) others += ", " + text(odd_rank + 1, ranks - 1);
  return name + ": " + value + word + others + ", " + alone;
}

/// Runs an action in which one rank differs. Checks that all ranks throw the same UsageError, with all these
/// texts, before any of them sends anything (collective over comm).
inline void check_disagreement(Communicator& comm, const std::vector<std::string>& texts,
                               const std::function<void()>& action) {
  const TrafficSince traffic(comm);
  const Ending mine = ending_of(action);
  INFO("it ended with: " << mine.text);
  CHECK(traffic.nothing());
  CHECK((mine.type != nullptr && *mine.type == typeid(UsageError)));
  for (const std::string& text : texts) {
    INFO("a part that it must have: " << text);
    CHECK(mine.text.find(text) != std::string::npos);
  }
  CHECK(all_ended_alike(comm, mine));
}

}  // namespace gridlops::testing
