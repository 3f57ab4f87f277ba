// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <concepts>
#include <exception>
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

// When one rank fails, all ranks must throw, or the others would wait for it. Ranks agree() on what they
// begin together. They attempt() what may fail on one rank alone; allocate_matrix() (dist_matrix.hpp)
// attempts to allocate memory.

/// The name of an operation that ranks begin together, and its arguments as names and values.
/// Reasons: docs/decisions/0029-agreement.md.
class GRIDLOPS_EXPORT Agreement {
 public:
  explicit Agreement(const char* operation);

  /// Adds an argument that must be the same on all ranks. Its value is a text: the parts, one after the
  /// other.
  template <class... Parts>
  Agreement& on(const char* name, const Parts&... value) {
    begin_argument(name);
    (text_ << ... << value);
    return *this;
  }
  /// The operation and all its arguments. Two ranks that do the same have the same text.
  std::string text() const { return text_.str(); }

 private:
  void begin_argument(const char* name);
  std::ostringstream text_;
};

/// Lets ranks compare what they begin together (collective over comm). Every rank runs local_part, which adds
/// its arguments to the agreement, checks them, and may allocate memory. local_part should send nothing; if
/// it does, a rank that fails must still take its part in that communication. One small all_reduce then tells
/// all ranks which arguments the others named and whether they failed. If the ranks disagree, all throw the
/// same UsageError, which lists every value that differs and the ranks that have it. Otherwise, if local_part
/// threw on any rank, all throw: that exception if all ranks threw the same one, or else what attempt()
/// throws.
GRIDLOPS_EXPORT void agree(Communicator& comm, const char* operation,
                           const std::function<void(Agreement&)>& local_part);

/// Agrees over a grid, for operations that a user of the library begins. GRIDLOPS_CHECK decides whether the
/// ranks compare: `off` never; `entry` unless this is a step of something that they have agreed on; `all`
/// always. Where they do not compare, and on idle ranks, local_part runs alone.
GRIDLOPS_EXPORT void agree(const std::shared_ptr<const ProcessGrid>& grid, const char* operation,
                           const std::function<void(Agreement&)>& local_part);

/// Does something that may fail on one rank alone, such as allocating memory or opening a file (collective
/// over comm). If action throws on any rank, all ranks throw the error of the lowest such rank: "rank N: "
/// before its text, its exit status and, if it is one of this library's errors, its type. If action
/// communicates, a rank that throws must have taken its part in all of that communication, as an operator's
/// apply() does.
GRIDLOPS_EXPORT void attempt(Communicator& comm, const std::function<void()>& action);

/// Attempts an action that returns a value, and returns this value.
template <std::invocable Action>
requires(!std::is_void_v<std::invoke_result_t<Action&>>) auto attempt(Communicator& comm, Action&& action) {
  std::optional<std::remove_cvref_t<std::invoke_result_t<Action&>>> result;
  attempt(comm, std::function<void()>([&] { result.emplace(action()); }));
  return std::move(*result);
}

/// Says what an exception that the library does not know is among its own: one of Python's, for instance.
/// as_ours returns an exception of one of the types of error.hpp, or null. Ranks tell each other of the
/// exception as of that. It may be called on any thread.
GRIDLOPS_EXPORT void set_types_of_others(std::exception_ptr (*as_ours)(const std::exception_ptr&));

}  // namespace gridlops
