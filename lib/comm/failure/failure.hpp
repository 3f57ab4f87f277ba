// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/comm/failure.hpp"

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

/// The only all_reduce that tells of failures: `failure` is this rank's, or null. If there is one, says_so()
/// must hold of the values that come back. Otherwise the ranks are not in the same reduction: then this
/// throws, and the others throw the same where they wait (Watchdog). Without a watchdog it throws
/// CommunicationError, here alone.
void reduce_and_tell(Communicator& comm, Elements values, ReduceOp op, ReductionOrder order,
                     const std::exception_ptr& failure, const std::function<bool()>& says_so);

/// Keeps what goes wrong on this rank alone in the middle of something that all ranks do together, until the
/// next reduction tells them. Until then the rank goes on with values that mean nothing, so that no other
/// waits for it.
///
/// Scopes nest: the outermost scope of a thread keeps what fails within any of them. The local part of an
/// agreement has a scope of its own, and its reduction tells what that keeps.
class FailureScope {
 public:
  FailureScope();
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  /// Whether this thread is within a scope.
  static bool is_open();

  /// Keeps the first exception of all steps. Errors that end the job are thrown on: those of communication
  /// and of devices, which one rank alone has and cannot go on from.
  template <class Step>
  void run(Step&& step) {
    try {
      step();
    } catch (...) {
      keep_current();
    }
  }

  /// Says that code of the caller's runs in here, on all ranks, so that one of them may fail alone.
  void note_callers_code() { outermost_->ran_callers_code_ = true; }

  /// Throws what was kept, if this is the outermost scope. If code of the caller's ran in it, all ranks throw
  /// (collective over comm then).
  void close(Communicator& comm);

  /// Sums the values over the ranks, or takes the largest, op being sum or max (collective over comm).
  /// Whether any rank has kept an exception travels with them; if so all ranks throw: the exception itself if
  /// it is the same on all ranks, otherwise what attempt() throws.
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
  /// The same where there is nothing to sum.
  void settle(Communicator& comm) {
    std::vector<double> nothing;
    reduce(comm, nothing);
  }

 private:
  friend std::exception_ptr failure_to_tell();
  friend void agree(Communicator&, const char*, const std::function<void(Agreement&)>&);

  /// A scope within `around`; an outermost one if that is null.
  explicit FailureScope(FailureScope* around);
  /// Only called while an exception is being handled.
  void keep_current();
  /// For reduce(), if some rank has failed.
  [[noreturn]] void throw_kept(Communicator& comm);

  FailureScope* const outermost_;
  FailureScope* const before_;
  std::exception_ptr failure_;
  bool ran_callers_code_ = false;
};

// The rest is for the watchdog and the end of a session.

/// An exception in the form in which ranks send it to each other.
struct SentFailure {
  std::int32_t type = 0;  // its place in error_types()
  std::int32_t status = 0;
  std::string text;

  SentFailure() = default;
  explicit SentFailure(const std::exception_ptr& failure);

  /// Throws what a failure of that rank is to all: an error of the same type if it is one of this library's,
  /// otherwise Error, with the rank before the text.
  [[noreturn]] void rethrow(int rank) const;
};

/// What a FailureScope of this thread keeps, or what this rank is telling in a reduction; null if nothing.
std::exception_ptr failure_to_tell();
/// "; this rank had yet to tell the others of: TEXT", if there is one, for the message with which the process
/// may have to end; otherwise empty.
std::string kept_failure_text();
/// Whether some ranks wait for messages that others have left out, so that no rank can go on. Errors then
/// leave every scope.
GRIDLOPS_EXPORT bool ranks_are_out_of_step();
void set_ranks_out_of_step(bool they_are);

/// "rank 2", or "ranks 0 to 3, 7".
std::string describe(const std::vector<std::size_t>& ranks);

}  // namespace gridlops
