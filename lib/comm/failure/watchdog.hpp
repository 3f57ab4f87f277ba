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

/// The ranks whose numbers differ from this one's by a power of two, around the circle of all ranks. Each has
/// at most 2⌈log₂ size⌉ of them, and reaches any rank in ⌈log₂ size⌉ steps.
std::vector<int> neighbours_of(int rank, int size);

/// Finds out whether ranks wait for each other in vain, while they wait.
///
/// A rank gets on when it begins to wait, begins an operation, works in the library (AtWork), or calls
/// keep_alive(). A rank that has waited for a while asks its neighbours, on a communicator that carries
/// nothing else, what they know: when a rank last got on, and, when none has for long, what each rank does.
/// They answer while they wait, at the beginning of operations, and in keep_alive(); at work, a thread does
/// it for them. So news of any rank reaches all others in a few steps. When no rank is known to have got on
/// for GRIDLOPS_TIMEOUT seconds, they wait in vain. A rank that has nothing to do may wait for hours, as long
/// as others work, and a rank that computes outside of the library is not taken for lost unless it is silent
/// for that long.
class Watchdog {
 public:
  using Clock = OperationRecord::Clock;

  /// Collective over comm, whose ranks are those of the session. The limit of the lowest rank is that of all;
  /// 0 stands for none, and then nothing is watched.
  Watchdog(MPI_Comm comm, double timeout_seconds, WhenStuck when_stuck);
  /// Collective, unless the ranks were found to wait in vain, or an exception unwinds the stack.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// That of the session, or null where nothing is watched.
  static Watchdog* current() { return current_; }
  /// When this rank should next look for questions while it does not wait.
  static Clock::time_point next_answer() { return next_answer_; }

  /// To be called again and again while this rank waits, from `begin` on.
  void watch(Clock::time_point begin, Clock::time_point now);
  /// The same for a rank that tests an operation now and then, and does other things in between.
  void watch_test(Clock::time_point now);
  /// To be called now and then by a rank that gets on.
  void answer(Clock::time_point now);
  /// Whether the thread answers while this rank is at work.
  bool thread_answers() const { return thread_may_answer_; }
  /// Returns when all ranks have reached this point.
  void await_all_ranks();

  /// Tells all ranks, which wait for messages that this rank has left out, of the failure for which it did.
  /// They throw the same.
  [[noreturn]] void tell_failure(Clock::time_point now);
  /// From now on each communication of this rank throws a CommunicationError with this text.
  void end_communication(const std::string& text);
  /// Whether ranks have left each other's messages, so that nothing more can be sent.
  bool is_out_of_step() const { return told_by_ >= 0; }

  /// For tests.
  double set_timeout_seconds(double seconds);
  void forget_failure();

 private:
  struct Word;
  struct State;
  struct Letter;

  void run_thread(const std::stop_token& stop);
  void listen(Clock::time_point now);
  void hear(const std::string& text, int from, Clock::time_point now);
  void ask(Clock::time_point now);
  /// What this rank knows, as a message of that kind.
  std::string words(int kind, Clock::time_point now);
  /// False, and nothing is said, while what was said to that rank before is still on its way.
  bool say(Letter& neighbour, int kind, Clock::time_point now);
  /// Says it to all neighbours, who say it to theirs.
  void spread(int kind, Clock::time_point now);
  void note_own_state(Clock::time_point now);
  /// How long ranks wait before they do something: for less time when one has a failure of its own to tell.
  double patience(Clock::time_point now) const;
  bool all_wait_for(double seconds, Clock::time_point now) const;
  bool am_lowest_heard_since(Clock::time_point since) const;
  [[noreturn]] void throw_told() const;
  /// That time does not count as waited.
  void leave_out(Clock::duration time);
  /// Who is silent since that time, and what the others do.
  std::string state_of_ranks(Clock::time_point since) const;
  [[noreturn]] void give_up(Clock::time_point now);

  static Watchdog* current_;
  static Clock::time_point next_answer_;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, steps_ = 0;  // to the rank that is farthest
  double timeout_seconds_ = 0;
  WhenStuck when_stuck_;
  std::vector<State> states_;  // as known, by rank
  std::vector<Letter> neighbours_;
  std::list<Letter> incoming_;
  Clock::time_point got_on_, any_got_on_, failure_heard_{}, next_look_{};
  bool has_failure_ = false;  // to tell the others
  std::uint64_t absences_at_test_ = 0;
  bool thread_may_answer_ = false;
  int notices_ = 0;
  bool is_in_vain_ = false;  // as this rank or another says
  int told_by_ = -1;         // the rank whose failure put the ranks out of step
  SentFailure told_;
  // Answers for this rank while it is at work, if MPI lets threads take turns, and looks after blocking
  // calls.
  std::jthread thread_;
};

}  // namespace gridlops
