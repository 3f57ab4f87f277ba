// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <list>
#include <string>
#include <utility>
#include <vector>

#include "comm/failure/failure.hpp"
#include "comm/failure/flight_recorder.hpp"

namespace gridlops {

struct MpiGroup;

/// The ranks at distances of powers of two, in a circle of all ranks. Each rank has at most 2⌈log₂ size⌉ such
/// neighbours, and reaches any rank in ⌈log₂ size⌉ steps.
std::vector<int> neighbours_of(int rank, int size);

inline double seconds_of(OperationRecord::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

inline OperationRecord::Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<OperationRecord::Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Tells each rank, on a communicator of its own, when the others last made progress, and what they do.
///
/// A rank that has waited for a while asks its neighbours, which answer while they wait, at the beginning of
/// operations, and in keep_alive(); while they work, a thread answers for them. So news of any rank reaches
/// all others in a few steps. It judges nothing: the Watchdog does. Only one thread at a time may call it.
class RankNews {
 public:
  using Clock = OperationRecord::Clock;

  /// The facts about a rank from its own messages: when it sent the last one, and when it last made progress.
  struct State {
    Clock::time_point heard{}, got_on{};
    OperationRecord doing;
    std::int32_t has_failure = 0;  // to tell the others

    /// Returns this state with all times later by `time`.
    State later(Clock::duration time) const { return {heard + time, got_on + time, doing, has_failure}; }
  };
  /// Ranks say what they wait for after this time, whatever the limit.
  static constexpr double notice_seconds = 60;

  /// Collective over comm. The lowest rank's limit applies to all.
  RankNews(MPI_Comm comm, double timeout_seconds);
  /// Collective, unless ranks wait in vain or are out of step, or an exception unwinds the stack.
  ~RankNews();
  RankNews(const RankNews&) = delete;
  RankNews& operator=(const RankNews&) = delete;

  int rank() const { return rank_; }
  /// The latest news, by rank.
  const std::vector<State>& states() const { return states_; }
  Clock::time_point any_got_on() const { return any_got_on_; }
  MpiGroup group() const;

  double timeout_seconds() const { return timeout_seconds_; }
  double set_timeout_seconds(double seconds) { return std::exchange(timeout_seconds_, seconds); }
  /// How long ranks wait before they act; shorter if one has a failure of its own to tell.
  double patience(Clock::time_point now) const;

  /// This rank made progress at that time.
  void get_on(Clock::time_point when) { got_on_ = std::max(got_on_, when); }
  /// Whether this rank has a failure to tell the others.
  void set_has_failure(bool has_failure) { has_failure_ = has_failure; }
  /// Excludes this time from the time waited.
  void leave_out(Clock::duration time);

  /// Hears neighbours, and answers them.
  void listen(Clock::time_point now);
  /// Listens, on a rank that waits, and asks neighbours that have been silent for a while.
  void exchange(Clock::time_point now);

  /// Tells all ranks that they wait in vain, once. Neighbours pass it on to theirs.
  void tell_in_vain(Clock::time_point now);
  bool is_in_vain() const { return is_in_vain_; }
  /// Puts the ranks out of step because of this rank's failure, and tells all.
  void tell_failure(SentFailure failure, Clock::time_point now);
  /// The same, and tells nobody.
  void take_failure(SentFailure failure);
  bool is_out_of_step() const { return told_by_ >= 0; }
  /// The failure that put the ranks out of step, and whose it was.
  const SentFailure& told() const { return told_; }
  int told_by() const { return told_by_; }
  /// For tests. Collective.
  void forget_failure();

 private:
  struct Word;
  /// A message from or to that rank.
  struct Letter {
    int rank = 0;
    std::string text{};
    MPI_Request request = MPI_REQUEST_NULL;
    Clock::time_point asked{};
  };

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

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, steps_ = 0;  // to the farthest rank
  double timeout_seconds_ = 0;
  std::vector<State> states_;
  std::vector<Letter> neighbours_;
  std::list<Letter> incoming_;
  Clock::time_point got_on_, any_got_on_, failure_heard_{};
  bool has_failure_ = false;
  bool is_in_vain_ = false;  // according to this rank or another
  int told_by_ = -1;         // the rank whose failure put the ranks out of step
  SentFailure told_;
};

}  // namespace gridlops
