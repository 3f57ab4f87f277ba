// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/message.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// What ranks compare before they exchange data: nothing; what they begin together (grids, first applications
/// of operators, solvers, files); or also each application of an operator, what runs within solvers, and
/// copies. What agrees on memory anyway compares its arguments in every setting.
enum class Check { off, entry, all };

/// What the environment variable GRIDLOPS_CHECK says when this is first called within a session; entry unless
/// it is set. Throws UsageError if it is none of the names above.
Check check_level();
/// At the beginning of a session.
void forget_check_level();
/// Its text, for a comparison between the ranks.
std::string check_level_text();

/// What a rank is about to do together with others: an operation, and its arguments as names and values.
class Agreement {
 public:
  explicit Agreement(const char* operation) : text_(operation) {}

  /// Adds an argument that all ranks must have alike. `name` lives as long as the program.
  template <class... Parts>
  Agreement& on(const char* name, const Parts&... value) {
    return append(name, message(value...));
  }
  /// The operation and all arguments; alike on two ranks that do the same.
  const std::string& text() const { return text_; }

 private:
  Agreement& append(const char* name, const std::string& value);
  std::string text_;
};

/// Runs local_part, which names its arguments to the agreement, checks them, and may take memory. It sends
/// nothing. Then all ranks compare, in one small all_reduce, what they named and how it went (collective over
/// comm). If they disagree, all throw the same UsageError, which has every value that differs with the ranks
/// that have it. If they agree, as far as they came, and local_part threw on some ranks, all throw: the
/// exception itself if it is the same on all, otherwise what succeed_together() throws.
void agree(Communicator& comm, const char* operation, const std::function<void(Agreement&)>& local_part);

/// The same where GRIDLOPS_CHECK asks for it. Elsewhere, and within a FailureScope at `entry`, where what the
/// ranks do follows from what they have agreed on, it runs local_part alone.
void agree_at_entry(Communicator& comm, const char* operation,
                    const std::function<void(Agreement&)>& local_part);

/// "rank 2", or "ranks 0 to 3, 7".
std::string describe(const std::vector<std::size_t>& ranks);

}  // namespace gridlops
