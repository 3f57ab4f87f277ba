// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops {

/// How much ranks compare before they exchange data. off: nothing. entry: operations that they begin together
/// (grids, first applications of operators, solvers, files). all: also each application of an operator,
/// operations within solvers, and copies. An operation that agrees on memory anyway compares its arguments in
/// every setting.
enum class Check { off, entry, all };

/// The level of the session, which all its ranks have. Without a session the value of the environment
/// variable GRIDLOPS_CHECK at the first call; entry if it is not set. Throws UsageError for any other value.
Check check_level();
/// Makes it this level; without one the next call reads the variable again. A session calls it at its
/// beginning.
void set_check_level(std::optional<Check> level);
const char* name_of(Check level);

/// The only all_reduce that tells of failures: `failure` is this rank's, or null. If there is one, says_so()
/// must be true of the values that come back. If it is not, the ranks are in different reductions. Then this
/// rank throws, and the waiting ranks throw the same error (Watchdog). Without a watchdog this rank alone
/// throws CommunicationError.
void reduce_and_tell(Communicator& comm, Elements values, ReduceOp op, ReductionOrder order,
                     const std::exception_ptr& failure, const std::function<bool()>& says_so);

/// Keeps a failure of this rank alone, in the middle of something that all ranks do together, until the next
/// reduction tells the others. Until then the rank goes on with meaningless values, so that no other rank
/// waits for it.
///
/// Scopes nest: the outermost scope of a thread keeps the failures of all of them. The local part of an
/// agreement has a scope of its own, whose failures the agreement's reduction tells.
class FailureScope {
 public:
  FailureScope();
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  /// Whether this thread is within a scope.
  static bool is_open();

  /// Keeps the first exception of all steps. Does not keep errors that end the job: those of communication
  /// and of devices, which occur on one rank alone and leave it unable to go on.
  template <class Step>
  void run(Step&& step) {
    try {
      step();
    } catch (...) {
      keep_current();
    }
  }

  /// Notes that the caller's code runs in this scope, on all ranks, so that one of them may fail alone. With
  /// Check::off nothing is compared for that.
  void note_callers_code() {
    if (check_level() != Check::off) note_lone_failures();
  }
  /// Notes failures that no caller can prevent, such as those of disks, at every level.
  void note_lone_failures() { outermost_->may_fail_alone_ = true; }

  /// Throws the kept exception, if this is the outermost scope. If a rank may have failed alone, all ranks
  /// throw (then collective over comm).
  void close(Communicator& comm);

  /// Sums the values over the ranks, or takes the maximum; op is sum or max (collective over comm). The
  /// reduction also carries whether any rank has kept an exception. If so, all ranks throw: that exception if
  /// it is the same on all, otherwise what attempt() throws.
  template <class Value>
  void reduce(Communicator& comm, std::vector<Value>& values, ReductionOrder order = ReductionOrder::any,
              ReduceOp op = ReduceOp::sum) {
    values.push_back(Value(outermost_->failure_ != nullptr ? 1 : 0));
    const auto says_so = [&values] { return values.back() != Value(0); };
    reduce_and_tell(comm, values, op, order, outermost_->failure_, says_so);
    const bool any = says_so();
    values.pop_back();
    if (any) throw_kept(comm);
  }
  /// Settles without values.
  void settle(Communicator& comm) {
    std::vector<double> nothing;
    reduce(comm, nothing);
  }

 private:
  friend std::exception_ptr failure_to_tell();
  friend void agree(Communicator&, const char*, const std::function<void(Agreement&)>&);

  /// A scope within `around`; the outermost one if `around` is null.
  explicit FailureScope(FailureScope* around);
  /// Call only in a handler of an exception.
  void keep_current();
  /// reduce() calls it if a rank has failed.
  [[noreturn]] void throw_kept(Communicator& comm);

  FailureScope* const outermost_;
  FailureScope* const before_;
  std::exception_ptr failure_;
  bool may_fail_alone_ = false;
};

// The watchdog and the end of a session use the rest.

/// An exception in the form in which ranks send it to each other.
struct SentFailure {
  std::int32_t type = 0;  // its position in error_types()
  std::int32_t status = 0;
  std::string text;

  SentFailure() = default;
  explicit SentFailure(const std::exception_ptr& failure);

  /// Rethrows another rank's failure, as the same GridLOps type or else as Error, prefixed with the rank.
  [[noreturn]] void rethrow(int rank) const;
};

/// The exception that a FailureScope of this thread keeps, or that this rank is telling in a reduction; null
/// if none.
std::exception_ptr failure_to_tell();
/// "; this rank had yet to tell the others of: TEXT", for the process's last message; empty if there is no
/// such exception.
std::string kept_failure_text();
/// Whether some ranks wait for messages that others skipped, so that no rank can go on. Errors then leave
/// every scope.
GRIDLOPS_EXPORT bool ranks_are_out_of_step();
void set_ranks_out_of_step(bool they_are);

/// "rank 2", or "ranks 0 to 3, 7".
std::string describe(const std::vector<std::size_t>& ranks);

}  // namespace gridlops
