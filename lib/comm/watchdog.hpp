// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/failure_scope.hpp"
#include "comm/flight_recorder.hpp"
#include "gridlops/mpi.hpp"

namespace gridlops {

/// Finds out whether ranks wait for each other in vain, while they wait.
///
/// A rank gets on when it begins to wait, begins an operation, or calls keep_alive(). A rank that has waited
/// for a while asks the others, on a communicator that carries nothing else, when they last got on and what
/// they do. They answer while they wait, at the beginning of operations, and in keep_alive(). When neither
/// this rank nor any that answers has got on for GRIDLOPS_TIMEOUT seconds, they wait in vain. So a rank that
/// has nothing to do may wait for hours, as long as others work, and a rank that computes is not taken for
/// lost unless it is silent for that long.
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
  /// To be called now and then by a rank that gets on.
  void answer(Clock::time_point now);
  /// Returns when all ranks have reached this point.
  void await_all_ranks();

  /// Tells all ranks, which wait for messages that this rank has left out, of the failure for which it did.
  /// They throw the same.
  [[noreturn]] void tell_failure(Clock::time_point now);
  /// Whether ranks have left each other's messages, so that nothing more can be sent.
  bool is_out_of_step() const { return told_by_ >= 0; }

  /// For tests.
  double set_timeout_seconds(double seconds);
  void forget_failure();

 private:
  struct Word;
  struct Peer;

  void listen(Clock::time_point now);
  void ask(Clock::time_point now);
  /// False, and nothing is said, while what was said to that rank before is still on its way.
  bool say(int rank, int kind, Clock::time_point now, const SentFailure& failure = {});
  /// How long this rank waits before it does something: for less time when the others do not know of a
  /// failure of its own.
  double patience() const;
  bool all_wait_for(double seconds, Clock::time_point now) const;
  [[noreturn]] void throw_told() const;
  /// That time does not count as waited.
  void leave_out(Clock::duration time);
  Clock::time_point last_got_on() const;
  /// Who is silent since that time, and what the others do.
  std::string state_of_ranks(Clock::time_point since) const;
  [[noreturn]] void give_up(Clock::time_point now);

  static Watchdog* current_;
  static Clock::time_point next_answer_;

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  double timeout_seconds_ = 0;
  WhenStuck when_stuck_;
  std::vector<Peer> peers_;  // by rank; that of this rank is not used
  Clock::time_point got_on_, next_look_{};
  int notices_ = 0;
  bool is_in_vain_ = false;  // as another rank says
  int told_by_ = -1;         // the rank whose failure put the ranks out of step
  SentFailure told_;
  std::jthread thread_;  // looks after blocking calls of MPI, and makes none itself
};

}  // namespace gridlops
