// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

class ProcessGrid;

// Where one rank fails, all ranks must throw: the others would wait for it. What ranks begin together they
// agree() on; what one rank alone may fail at is an attempt(); allocate_matrix() (dist_matrix.hpp) attempts
// to take memory.

/// An operation that ranks begin together, and its arguments as names and values.
class GRIDLOPS_EXPORT Agreement {
 public:
  explicit Agreement(const char* operation);

  /// Adds an argument that all ranks must have alike. Its value is a text, the parts one after the other.
  template <class... Parts>
  Agreement& on(const char* name, const Parts&... value) {
    begin_argument(name);
    (text_ << ... << value);
    return *this;
  }
  /// The operation and all arguments, the same on two ranks that do the same.
  std::string text() const { return text_.str(); }

 private:
  void begin_argument(const char* name);
  std::ostringstream text_;
};

/// Lets ranks compare what they begin together (collective over comm). Every rank runs local_part, which
/// names its arguments to the agreement, checks them, and may take memory. It should send nothing; a rank
/// that fails must have taken its part in what it does send. Then one small all_reduce tells all ranks what
/// the others named, and how it went. If the ranks disagree, all throw the same UsageError, which has every
/// value that differs with the ranks that have it. Otherwise, if local_part threw on some ranks, all throw:
/// the exception itself if it is the same on all, else what attempt() throws.
GRIDLOPS_EXPORT void agree(Communicator& comm, const char* operation,
                           const std::function<void(Agreement&)>& local_part);

/// The same over a grid, for what a user of the library begins. GRIDLOPS_CHECK decides whether the ranks
/// compare: with `off` never, with `entry` unless this is a step of something that they have agreed on, with
/// `all` always. Where they do not compare, and on idle ranks, local_part runs alone.
GRIDLOPS_EXPORT void agree(const std::shared_ptr<const ProcessGrid>& grid, const char* operation,
                           const std::function<void(Agreement&)>& local_part);

/// Does what one rank alone may fail at, such as taking memory or opening a file (collective over comm). If
/// action throws on any rank, all ranks throw the error of the lowest rank where it did, with "rank N: "
/// before the text, its exit status and, if it is one of this library's, its type. Where action communicates,
/// a rank that throws must have taken its part in all of that, as in an operator's apply().
GRIDLOPS_EXPORT void attempt(Communicator& comm, const std::function<void()>& action);

/// The same, and returns what action returns.
template <std::invocable Action>
requires(!std::is_void_v<std::invoke_result_t<Action&>>) auto attempt(Communicator& comm, Action&& action) {
  std::optional<std::remove_cvref_t<std::invoke_result_t<Action&>>> result;
  attempt(comm, std::function<void()>([&] { result.emplace(action()); }));
  return std::move(*result);
}

}  // namespace gridlops
