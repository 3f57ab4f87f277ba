// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "comm/failure/rank_news.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

/// Finds out whether ranks wait for each other in vain, while they wait.
///
/// A rank makes progress when it begins to wait, begins an operation, works in the library (AtWork), or calls
/// keep_alive(). If no news of progress (RankNews) arrives for GRIDLOPS_TIMEOUT seconds, the ranks wait in
/// vain. A rank with nothing to do may wait for hours while others work. A rank that computes outside the
/// library counts as lost only after that long a silence. Reasons: docs/decisions/0028-watchdog.md.
class Watchdog {
 public:
  using Clock = OperationRecord::Clock;

  /// Collective over comm, which has the ranks of the session. The lowest rank's limit applies to all; 0
  /// means no limit, and then the watchdog does nothing.
  Watchdog(MPI_Comm comm, double timeout_seconds, WhenStuck when_stuck);
  /// Collective, unless the watchdog found that ranks wait in vain, or an exception unwinds the stack.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The session's watchdog; null without a limit.
  static Watchdog* current() { return current_; }
  /// When this rank should next look for questions while it does not wait.
  static Clock::time_point next_answer() { return next_answer_; }

  /// Call this repeatedly while this rank waits; it has waited since `begin`.
  void watch(Clock::time_point begin, Clock::time_point now);
  /// Call this, instead, on a rank that tests an operation now and then, and does other work in between.
  void watch_test(Clock::time_point now);
  /// Call this now and then while this rank makes progress.
  void answer(Clock::time_point now);
  /// Whether the thread answers while this rank works.
  bool thread_answers() const { return thread_may_answer_; }
  /// Returns when all ranks have reached this point.
  void await_all_ranks();

  /// Tells all ranks of the failure for which this rank skipped the messages that they wait for. All throw
  /// the same error.
  [[noreturn]] void tell_failure(Clock::time_point now);
  /// Makes each later communication of this rank throw a CommunicationError with this text.
  void end_communication(const std::string& text);
  /// Whether a rank has skipped messages that others wait for. Then no rank can send anything more.
  bool is_out_of_step() const { return news_.is_out_of_step(); }

  /// For tests.
  double set_timeout_seconds(double seconds) { return news_.set_timeout_seconds(seconds); }
  void forget_failure() { news_.forget_failure(); }

 private:
  void run_thread(const std::stop_token& stop);
  /// watch() for a rank that is in a call of another library. What it would throw is reported, once.
  void watch_foreign_call(Clock::time_point begin, Clock::time_point now);
  /// Listens on a rank that makes progress.
  void hear(Clock::time_point now);
  bool all_wait_for(double seconds, Clock::time_point now) const;
  /// Whether is(state) of no lower rank.
  template <class Is>
  bool am_lowest(const Is& is) const;
  bool am_lowest_heard_since(Clock::time_point since) const;
  [[noreturn]] void throw_told() const;
  /// The ranks that have been silent since then, and the operations of all others.
  std::string state_of_ranks(Clock::time_point since) const;
  [[noreturn]] void give_up(Clock::time_point now);

  static Watchdog* current_;
  static Clock::time_point next_answer_;

  WhenStuck when_stuck_;
  RankNews news_;
  Clock::time_point next_look_{};
  std::uint64_t absences_at_test_ = 0;
  bool thread_may_answer_ = false;
  int notices_ = 0;
  bool has_reported_ = false;
  // Answers for this rank while it works, if MPI lets threads take turns, and watches calls that block.
  std::jthread thread_;
};

}  // namespace gridlops
