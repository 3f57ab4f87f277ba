// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <vector>

#include "comm/failure/failure.hpp"
#include "comm/failure/flight_recorder.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

/// The ranks at distances of powers of two, in a circle of all ranks. Each rank has at most 2⌈log₂ size⌉ such
/// neighbours, and reaches any rank in ⌈log₂ size⌉ steps.
std::vector<int> neighbours_of(int rank, int size);

/// Finds out whether ranks wait for each other in vain, while they wait.
///
/// A rank makes progress when it begins to wait, begins an operation, works in the library (AtWork), or calls
/// keep_alive(). A rank that has waited for a while asks its neighbours, on a communicator of the watchdog's
/// own, when any rank last made progress and, if none has for long, what each rank does. Neighbours answer
/// while they wait, at the beginning of operations, and in keep_alive(); while they work, a thread answers
/// for them. So news of any rank reaches all others in a few steps. If no news of progress arrives for
/// GRIDLOPS_TIMEOUT seconds, the ranks wait in vain. A rank with nothing to do may wait for hours while
/// others work. A rank that computes outside the library counts as lost only after that long a silence.
/// Reasons: docs/decisions/0028-watchdog.md.
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
  bool is_out_of_step() const { return told_by_ >= 0; }

  /// For tests.
  double set_timeout_seconds(double seconds);
  void forget_failure();

 private:
  struct Word;
  struct State;
  struct Letter;

  void run_thread(const std::stop_token& stop);
  /// watch() for a rank that is in a call of another library. What it would throw is reported, once.
  void watch_foreign_call(Clock::time_point begin, Clock::time_point now);
  void listen(Clock::time_point now);
  void hear(const std::string& text, int from, Clock::time_point now);
  void ask(Clock::time_point now);
  /// This rank's facts, as a message of that kind.
  std::string words(int kind, Clock::time_point now);
  /// Sends a message to a neighbour. Returns false, and sends nothing, while the previous message to it is
  /// still on its way.
  bool say(Letter& neighbour, int kind, Clock::time_point now);
  /// Sends it to all neighbours, which pass it on to theirs.
  void spread(int kind, Clock::time_point now);
  void note_own_state(Clock::time_point now);
  /// How long ranks wait before they act; shorter if one has a failure of its own to tell.
  double patience(Clock::time_point now) const;
  bool all_wait_for(double seconds, Clock::time_point now) const;
  bool am_lowest_heard_since(Clock::time_point since) const;
  [[noreturn]] void throw_told() const;
  /// Excludes this time from the time waited.
  void leave_out(Clock::duration time);
  /// The ranks that have been silent since then, and the operations of all others.
  std::string state_of_ranks(Clock::time_point since) const;
  [[noreturn]] void give_up(Clock::time_point now);

  static Watchdog* current_;
  static Clock::time_point next_answer_;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, steps_ = 0;  // to the farthest rank
  double timeout_seconds_ = 0;
  WhenStuck when_stuck_;
  std::vector<State> states_;  // the latest news, by rank
  std::vector<Letter> neighbours_;
  std::list<Letter> incoming_;
  Clock::time_point got_on_, any_got_on_, failure_heard_{}, next_look_{};
  bool has_failure_ = false;  // to tell the others
  std::uint64_t absences_at_test_ = 0;
  bool thread_may_answer_ = false;
  int notices_ = 0;
  bool has_reported_ = false;
  bool is_in_vain_ = false;  // according to this rank or another
  int told_by_ = -1;         // the rank whose failure put the ranks out of step
  SentFailure told_;
  // Answers for this rank while it works, if MPI lets threads take turns, and watches calls that block.
  std::jthread thread_;
};

}  // namespace gridlops
