// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <typeinfo>

#include "gridlops/base/error.hpp"
#include "support/grids.hpp"

namespace gridlops::testing {

/// How an action ended.
struct Ending {
  std::string text;  // empty: nothing was thrown
  const std::type_info* type = nullptr;
  std::exception_ptr exception;
};

inline Ending ending_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::exception& error) {
    return {error.what(), &typeid(error), std::current_exception()};
  }
  return {};
}

/// Whether all ranks ended alike (collective over comm). If a rank never comes, the time limit of the test
/// case ends the others.
inline bool all_ended_alike(Communicator& comm, const Ending& mine) {
  const std::string first = broadcast_text(comm, mine.text, 0);
  const std::string type = mine.type == nullptr ? "" : mine.type->name();
  const std::string first_type = broadcast_text(comm, type, 0);
  std::array<std::int32_t, 1> same{mine.text == first && type == first_type};
  comm.all_reduce(same, ReduceOp::min);
  return same[0] != 0;
}
inline bool all_ended_alike(const ProcessGrid& grid, const Ending& mine) {
  return all_ended_alike(grid.comm(), mine);
}

/// The rank that the error names; -1 without one.
inline int rank_of(const Ending& ending) {
  try {
    if (ending.exception != nullptr) std::rethrow_exception(ending.exception);
  } catch (const Error& error) {
    return error.rank();
  } catch (...) {
  }
  return -1;
}

/// Checks that the action ends on all ranks with this error of the rank `failing`.
template <class E>
void check_agreed(const ProcessGrid& grid, int failing, const std::string& text,
                  const std::function<void()>& action) {
  const Ending mine = ending_of(action);
  INFO("it ended with: " << mine.text);
  CHECK(all_ended_alike(grid, mine));
  // On one rank the error need not name the rank.
  const bool alone = grid.comm().size() == 1;
  CHECK((mine.text == "rank " + std::to_string(failing) + ": " + text || (alone && mine.text == text)));
  CHECK((mine.type != nullptr && *mine.type == typeid(E)));
  CHECK((rank_of(mine) == failing || (alone && rank_of(mine) < 0)));
}

}  // namespace gridlops::testing
