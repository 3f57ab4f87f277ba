// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include "comm/kept_failure.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// Keeps what goes wrong on this rank alone in the middle of something that all ranks do together, until they
/// agree on it: the rank goes on with values that mean nothing, so that nobody waits for it.
///
/// A scope within another one on the same thread keeps nothing itself: the outermost one does.
class FailureScope {
 public:
  FailureScope();
  ~FailureScope();
  FailureScope(const FailureScope&) = delete;
  FailureScope& operator=(const FailureScope&) = delete;

  template <class Step>
  void run(Step&& step) {
    outermost_->kept_.run(step);
  }

  /// Throws what was kept, on this rank, if this is the outermost scope.
  void close() {
    if (outermost_ == this) kept_.rethrow();
  }

  /// Sums the values over the ranks; with them travels whether any rank has kept something, and then all
  /// throw: what all have kept alike, as it is; otherwise as succeed_together() does (collective over comm).
  template <class Value>
  void reduce(Communicator& comm, std::vector<Value>& values, ReductionOrder order = ReductionOrder::any) {
    values.push_back(Value(failed() ? 1 : 0));
    comm.all_reduce(values, ReduceOp::sum, order);
    const bool any = values.back() != Value(0);
    values.pop_back();
    if (any) throw_together(comm);
  }
  /// The same where there is nothing to sum.
  void settle(Communicator& comm) {
    std::vector<double> nothing;
    reduce(comm, nothing);
  }

 private:
  /// As some rank has failed: throws what all have kept alike, as it is; otherwise as succeed_together()
  /// does.
  void throw_together(Communicator& comm);
  bool failed() const { return outermost_->kept_.failure() != nullptr; }

  FailureScope* const outermost_;
  KeptFailure kept_;
};

}  // namespace gridlops
