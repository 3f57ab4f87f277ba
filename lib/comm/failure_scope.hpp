// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/error.hpp"
#include "gridlops/export.hpp"

namespace gridlops {

/// The text of an exception; empty if there is none.
std::string text_of(const std::exception_ptr& failure);

/// An exception in the form in which ranks send it to each other.
struct SentFailure {
  std::int32_t kind = 0, status = 0;
  std::string text;

  SentFailure() = default;
  explicit SentFailure(const std::exception_ptr& failure);
};

/// Throws what a failure of that rank is to all: an error of the same type if it is one of this library's,
/// otherwise Error, with the rank before the text.
[[noreturn]] void rethrow(int rank, const SentFailure& failure);

/// Whether some ranks wait for messages that others have left out, so that no rank can go on. Errors then
/// leave every scope.
GRIDLOPS_EXPORT bool ranks_are_out_of_step();
void set_ranks_out_of_step(bool they_are);

/// Throws on all ranks, of which at least one has an exception (collective over comm): the exception itself
/// if it is the same on all, otherwise what succeed_together() throws.
[[noreturn]] void throw_together(Communicator& comm, const std::exception_ptr& mine);

/// What went wrong on this rank in steps that it goes through all the same, because other ranks wait for it
/// in them.
class KeptFailure {
 public:
  /// Keeps the first exception of all steps. Errors that end the job are thrown on: those of communication
  /// and of devices, which one rank alone has and cannot go on from.
  template <class Step>
  void run(Step&& step) {
    try {
      step();
    } catch (const OutOfMemory&) {
      if (ranks_are_out_of_step()) throw;
      keep();
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank || ranks_are_out_of_step()) throw;
      keep();
    } catch (...) {
      keep();
    }
  }

  const std::exception_ptr& failure() const { return failure_; }

  /// Throws what was kept, if anything was, and forgets it.
  void rethrow() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void keep() {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }

  std::exception_ptr failure_;
};

/// "; this rank had yet to tell the others of: TEXT", where a FailureScope of this thread keeps a failure,
/// for the message with which the process may have to end; otherwise empty.
std::string kept_failure_text();
/// What a FailureScope of this thread keeps, or what this rank is telling in an agreement; null if nothing.
std::exception_ptr failure_to_tell();

/// Throws the failure of this rank, which finds the ranks out of step where it was to tell them of it. The
/// others throw the same where they wait (Watchdog). Without a watchdog it throws CommunicationError, here
/// alone.
[[noreturn]] void tell_out_of_step(const std::exception_ptr& failure, const char* found);

/// A reduction in which this rank tells the others of its failure, if it has one.
template <class Values>
void reduce_telling(Communicator& comm, Values& values, ReduceOp op, ReductionOrder order,
                    const std::exception_ptr& failure) {
  try {
    comm.all_reduce(values, op, order);
  } catch (const CommunicationError& error) {
    if (failure == nullptr || ranks_are_out_of_step()) throw;
    tell_out_of_step(failure, error.what());
  }
}

/// For the time in which this rank tells the others of a failure.
class Telling {
 public:
  explicit Telling(const std::exception_ptr& failure);
  ~Telling();
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  const std::exception_ptr* const before_;
};

/// Keeps what goes wrong on this rank alone in the middle of something that all ranks do together, until they
/// agree on it. Until then the rank goes on with values that mean nothing, so that no other waits for it.
///
/// Scopes nest: the outermost scope of a thread keeps what fails within any of them.
class FailureScope {
 public:
  FailureScope();
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  friend std::exception_ptr failure_to_tell();
  /// Whether this thread is within a scope.
  static bool is_open();

  template <class Step>
  void run(Step&& step) {
    outermost_->kept_.run(step);
  }

  /// Says that code of the caller's runs in here, on all ranks, so that one of them may fail alone.
  void note_callers_code() { outermost_->ran_callers_code_ = true; }

  /// Throws what was kept, if this is the outermost scope. If code of the caller's ran in it, all ranks throw
  /// (collective over comm then).
  void close(Communicator& comm);

  /// Sums the values over the ranks, or takes the largest, op being sum or max (collective over comm).
  /// Whether any rank has kept an exception travels with them; if so all ranks throw: the exception itself if
  /// it is the same on all ranks, otherwise what succeed_together() throws.
  template <class Value>
  void reduce(Communicator& comm, std::vector<Value>& values, ReductionOrder order = ReductionOrder::any,
              ReduceOp op = ReduceOp::sum) {
    values.push_back(Value(failed() ? 1 : 0));
    reduce_telling(comm, values, op, order, outermost_->kept_.failure());
    const bool any = values.back() != Value(0);
    values.pop_back();
    if (any || failed()) throw_kept(comm, any);
  }
  /// The same where there is nothing to sum.
  void settle(Communicator& comm) {
    std::vector<double> nothing;
    reduce(comm, nothing);
  }

 private:
  /// For reduce(), if some rank has failed. `any`: whether the reduction says so, as it must.
  void throw_kept(Communicator& comm, bool any);
  bool failed() const { return outermost_->kept_.failure() != nullptr; }

  FailureScope* const outermost_;
  KeptFailure kept_;
  bool ran_callers_code_ = false;
};

}  // namespace gridlops
