// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/job_end.hpp"
#include "comm/failure/watched_wait.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

using Clock = Watchdog::Clock;
using std::chrono::milliseconds;

constexpr int word_tag = 1;
constexpr double notice_seconds = 60;
/// The time within which all ranks learn that one has a failure to tell.
constexpr auto impatience_interval = milliseconds(10'000);
constexpr auto look_interval = milliseconds(10), longest_look_interval = milliseconds(1000);
/// How long a rank tries to reach its neighbours before it ends.
constexpr auto last_words_interval = milliseconds(1000);
/// How long the rank that ends the job lets the others write their lines, and how long these wait for it.
constexpr auto farewell_interval = milliseconds(1500), patience_interval = milliseconds(4000);

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

bool is_over(MPI_Request& request) {
  int done = 0;
  return MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
}

template <class Value>
void append(std::string& text, const Value& value) {
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Value>
Value take(std::string_view& text) {
  Value value;
  std::memcpy(static_cast<void*>(&value), text.data(), sizeof value);
  text.remove_prefix(sizeof value);
  return value;
}

}  // namespace

std::vector<int> neighbours_of(int rank, int size) {
  std::vector<int> ranks;
  for (std::int64_t step = 1; step < size; step *= 2)
    for (const std::int64_t other : {rank + step, rank - step + size})
      ranks.push_back(static_cast<int>(other % size));
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

/// The header of a message between ranks. The State of the sender or of all ranks follows, then the text of a
/// failure. Clocks differ, so times are relative to the moment of sending.
struct Watchdog::Word {
  enum Kind { question, answer, in_vain, failed };
  std::int32_t kind;
  std::int32_t is_of_all;
  Clock::time_point any_got_on, failure_heard;
  std::int32_t told_by, type_of_failure, status;  // of the failure
};

/// The facts about a rank from its own messages: when it sent the last one, and when it last made progress.
struct Watchdog::State {
  Clock::time_point heard{}, got_on{};
  OperationRecord doing;
  std::int32_t has_failure = 0;  // to tell the others

  /// Returns this state with all times later by `time`.
  State later(Clock::duration time) const { return {heard + time, got_on + time, doing, has_failure}; }
};

/// A message from or to that rank.
struct Watchdog::Letter {
  int rank = 0;
  std::string text{};
  MPI_Request request = MPI_REQUEST_NULL;
  Clock::time_point asked{};
};

Watchdog* Watchdog::current_ = nullptr;
Clock::time_point Watchdog::next_answer_ = Clock::time_point::max();

Watchdog::Watchdog(MPI_Comm comm, double timeout_seconds, WhenStuck when_stuck)
    : timeout_seconds_(timeout_seconds),
      when_stuck_(when_stuck),
      got_on_(Clock::now()),
      any_got_on_(got_on_) {
  MpiGroup group = MpiGroup::of(comm, true);
  rank_ = group.rank;
  states_.resize(at(group.size));
  for (const int rank : neighbours_of(rank_, group.size)) neighbours_.push_back({rank});
  while (1 << steps_ < group.size) ++steps_;
  BlockingCall(group).run("MPI_Comm_dup", 0, MPI_Comm_dup, comm, &comm_);
  group.check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", 0);
  group.comm = comm_;
  group.await("MPI_Ibcast", 1, MPI_Ibcast, &timeout_seconds_, 1, MPI_DOUBLE, 0, comm_);
  if (timeout_seconds_ == 0) return;
  current_ = this;
  next_answer_ = got_on_;
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  thread_may_answer_ = level >= MPI_THREAD_SERIALIZED;
  Away::begin();
  // Signals are left to the other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = start_thread([this](const std::stop_token& stop) { run_thread(stop); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Leaks the memory of messages that are still on their way.
Watchdog::~Watchdog() {
  thread_ = {};
  Away::end();
  current_ = nullptr;
  next_answer_ = Clock::time_point::max();
  if (!mpi_is_running()) return;
  listen(Clock::now());
  const auto is_done = [](auto& one) { return is_over(one.request); };
  if (!std::all_of(neighbours_.begin(), neighbours_.end(), is_done) || !incoming_.empty())
    new (std::nothrow) std::pair(std::move(neighbours_), std::move(incoming_));
  if (!is_in_vain_ && !is_out_of_step() && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

// While this rank works, its thread answers. While it is in a blocking call of another library, the thread
// waits for the other ranks in its place, but cannot throw in it. While it is in a blocking call of MPI,
// nobody answers: if such a call lasts longer than the limit, the thread says so, and ends the job. The
// thread counts only the time in which it runs itself, so a job may be suspended within a call.
void Watchdog::run_thread(const std::stop_token& stop) {
  constexpr double farewell_seconds = 2;
  const double limit = timeout_seconds_, tick = std::clamp(limit / 8, 0.01, 1.0);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any end;
  std::uint64_t call = 0;
  double passed = 0;
  Clock::time_point begin;
  Clock::duration pause = duration_of(tick);
  const auto look_after = [&](Away::Reason reason, std::uint64_t number) {
    if (reason == Away::Reason::work) {
      if (thread_may_answer_) listen(got_on_ = Clock::now());
      return;
    }
    const bool is_new = std::exchange(call, number) != number;
    if (is_new) begin = Clock::now();
    if (reason == Away::Reason::foreign_call && thread_may_answer_) {
      // From now on as often as a rank that polls: news that is heard late looks new.
      pause = look_interval;
      watch_foreign_call(begin, Clock::now());
      return;
    }
    passed = is_new ? 0 : passed + tick;
    if (passed >= limit && passed - tick < limit)
      report(message("waited in vain ", flight_recorder().last().text(),
                     reason == Away::Reason::blocking_call
                         ? ": all ranks began it, and it lasts for longer than "
                         : ": a call within it lasts for longer than ",
                     limit, " s (GRIDLOPS_TIMEOUT); a rank stopped, or was lost, within it"));
    if (passed >= limit + farewell_seconds && when_stuck_ == WhenStuck::end_job)
      _exit(static_cast<int>(ExitStatus::try_again));
  };
  while (!end.wait_for(lock, stop, std::exchange(pause, duration_of(tick)),
                       [&] { return stop.stop_requested(); }))
    Away::meanwhile(look_after);
}

double Watchdog::set_timeout_seconds(double seconds) { return std::exchange(timeout_seconds_, seconds); }

void Watchdog::note_own_state(Clock::time_point now) {
  any_got_on_ = std::max(any_got_on_, got_on_);
  if (has_failure_) failure_heard_ = now;
  states_[at(rank_)] = {now, got_on_, flight_recorder().last(), has_failure_};
}

void Watchdog::watch(Clock::time_point begin, Clock::time_point now) {
  got_on_ = std::max(got_on_, begin);
  if (now < next_look_) return;
  const auto unseen = now - std::max(next_look_, begin);
  if (unseen > longest_look_interval) leave_out(unseen - longest_look_interval);
  next_look_ = now + look_interval;
  has_failure_ = failure_to_tell() != nullptr;
  note_own_state(now);
  listen(now);
  ask(now);
  if (is_out_of_step()) throw_told();
  if (is_in_vain_) give_up(now);
  const bool am_lowest_to_tell =
      has_failure_ && std::none_of(states_.begin(), states_.begin() + rank_,
                                   [](const State& state) { return state.has_failure; });
  if (am_lowest_to_tell && all_wait_for(patience(now), now)) tell_failure(now);
  const double idle = seconds(now - any_got_on_);
  if (idle > timeout_seconds_) give_up(now);
  const int notices = static_cast<int>(idle / notice_seconds);
  const auto since = now - duration_of(notice_seconds);
  if (notices > notices_ && am_lowest_heard_since(since))
    report(message("waits since ", static_cast<int>(idle), " s ", flight_recorder().last().text(), "; ",
                   state_of_ranks(since)));
  notices_ = notices;
}

void Watchdog::watch_foreign_call(Clock::time_point begin, Clock::time_point now) {
  try {
    watch(begin, now);
  } catch (const Error& error) {
    if (!std::exchange(has_reported_, true)) report(error.what());
  }
}

void Watchdog::watch_test(Clock::time_point now) {
  const bool has_worked = std::exchange(absences_at_test_, Away::count()) != Away::count();
  watch(has_worked ? now : flight_recorder().last().begin, now);
}

// A rank that was stopped, or suspended with its job, cannot tell how long others were silent. If the machine
// is merely too busy to let the rank look, part of the time still counts.
void Watchdog::leave_out(Clock::duration time) {
  got_on_ += time;
  any_got_on_ += time;
  for (State& state : states_) state.got_on += time;
}

void Watchdog::answer(Clock::time_point now) {
  if (is_out_of_step()) throw_told();
  got_on_ = now;
  next_answer_ = now + look_interval;
  has_failure_ = failure_to_tell() != nullptr;
  listen(now);
  if (is_out_of_step()) throw_told();
  if (is_in_vain_) give_up(now);
}

void Watchdog::listen(Clock::time_point now) {
  for (;;) {
    int is_there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, word_tag, comm_, &is_there, &status) != MPI_SUCCESS || is_there == 0)
      break;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    Letter& word = incoming_.emplace_back(Letter{status.MPI_SOURCE, std::string(at(length), '\0')});
    if (MPI_Irecv(word.text.data(), length, MPI_BYTE, word.rank, word_tag, comm_, &word.request) !=
        MPI_SUCCESS)
      break;
  }
  for (auto word = incoming_.begin(); word != incoming_.end();) {
    if (!is_over(word->request)) {
      ++word;
      continue;
    }
    hear(word->text, word->rank, now);
    word = incoming_.erase(word);
  }
}

void Watchdog::hear(const std::string& text, int from, Clock::time_point now) {
  std::string_view rest = text;
  const auto word = take<Word>(rest);
  const auto since_start = now.time_since_epoch();
  any_got_on_ = std::max(any_got_on_, word.any_got_on + since_start);
  failure_heard_ = std::max(failure_heard_, word.failure_heard + since_start);
  for (int rank = 0; rank < static_cast<int>(states_.size()); ++rank) {
    if (word.is_of_all == 0 && rank != from) continue;
    const State told = take<State>(rest).later(since_start);
    if (rank != rank_ && told.heard > states_[at(rank)].heard) states_[at(rank)] = told;
  }
  if (word.kind == Word::question) {
    const auto asks = [from](const Letter& one) { return one.rank == from; };
    const auto neighbour = std::find_if(neighbours_.begin(), neighbours_.end(), asks);
    if (neighbour != neighbours_.end()) say(*neighbour, Word::answer, now);
  }
  if (word.kind == Word::in_vain && !std::exchange(is_in_vain_, true)) spread(Word::in_vain, now);
  if (word.kind == Word::failed && !is_out_of_step()) {
    told_by_ = word.told_by;
    told_.type = word.type_of_failure;
    told_.status = word.status;
    told_.text = rest;
    set_ranks_out_of_step(true);
    spread(Word::failed, now);
  }
}

// News takes `steps_` steps to the farthest rank, and must arrive well before the limit. This rank asks a
// silent rank only rarely, because messages that the other does not receive stay in memory.
void Watchdog::ask(Clock::time_point now) {
  const auto interval = duration_of(std::min(patience(now), notice_seconds) / (4 + 2 * steps_));
  if (now - got_on_ < interval) return;
  for (Letter& neighbour : neighbours_) {
    const auto heard = states_[at(neighbour.rank)].heard;
    const bool has_answered = heard >= neighbour.asked;
    if (now - std::max(neighbour.asked, heard) < (has_answered ? interval : 8 * interval)) continue;
    neighbour.asked = now;
    say(neighbour, Word::question, now);
  }
}

// The work of each rank matters only when none makes progress.
std::string Watchdog::words(int kind, Clock::time_point now) {
  note_own_state(now);
  const bool is_of_all = seconds(now - any_got_on_) > std::min(patience(now), notice_seconds) / 2;
  const auto since_start = now.time_since_epoch();
  std::string text;
  append(text, Word{kind, is_of_all, any_got_on_ - since_start, failure_heard_ - since_start, told_by_,
                    told_.type, told_.status});
  for (const State& state : states_)
    if (is_of_all || &state == &states_[at(rank_)]) append(text, state.later(-since_start));
  return text + told_.text;
}

bool Watchdog::say(Letter& neighbour, int kind, Clock::time_point now) {
  if (!is_over(neighbour.request)) return false;
  neighbour.text = words(kind, now);
  MPI_Isend(neighbour.text.data(), static_cast<int>(neighbour.text.size()), MPI_BYTE, neighbour.rank,
            word_tag, comm_, &neighbour.request);
  return true;
}

void Watchdog::spread(int kind, Clock::time_point now) {
  std::vector<Letter*> unsaid, unsent;
  for (Letter& neighbour : neighbours_) unsaid.push_back(&neighbour);
  unsent = unsaid;
  const auto end = Clock::now() + last_words_interval;
  for (;;) {
    std::erase_if(unsaid, [&](Letter* one) { return say(*one, kind, now); });
    if (unsaid.empty()) std::erase_if(unsent, [](Letter* one) { return is_over(one->request); });
    if (unsent.empty() || Clock::now() > end) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

double Watchdog::patience(Clock::time_point now) const {
  constexpr double longest_with_failure = 5;
  return now - failure_heard_ < impatience_interval ? std::min(timeout_seconds_ / 2, longest_with_failure)
                                                    : timeout_seconds_;
}

// Each rank has said so itself, and recently. So none computes, and none could wake another.
bool Watchdog::all_wait_for(double seconds, Clock::time_point now) const {
  const auto time = duration_of(seconds);
  return std::all_of(states_.begin(), states_.end(), [&](const State& state) {
    return state.heard - state.got_on > time && now - state.heard < time;
  });
}

void Watchdog::tell_failure(Clock::time_point now) {
  told_ = SentFailure(failure_to_tell());
  told_.text +=
      " (thrown where the others waited for messages of this rank, so nothing more can be sent, and the job "
      "must end)";
  told_by_ = rank_;
  set_ranks_out_of_step(true);
  spread(Word::failed, now);
  throw_told();
}

void Watchdog::end_communication(const std::string& text) {
  told_ = SentFailure(std::make_exception_ptr(CommunicationError(text)));
  told_by_ = rank_;
  set_ranks_out_of_step(true);
  next_answer_ = {};
}

// Neighbours pass a failure on to each other. After the barrier all these messages have arrived.
void Watchdog::forget_failure() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &all_here);
  while (!is_over(all_here)) listen(Clock::now());
  listen(Clock::now());
  told_by_ = -1;
  told_ = {};
  set_ranks_out_of_step(false);
}

void Watchdog::throw_told() const { told_.rethrow(told_by_); }

std::string Watchdog::state_of_ranks(Clock::time_point since) const {
  std::vector<std::size_t> silent;
  std::map<std::string, std::vector<std::size_t>> doing;
  for (std::size_t rank = 0; rank < states_.size(); ++rank) {
    const State& state = states_[rank];
    (state.heard < since ? silent : doing[state.doing.text_of_all_ranks()]).push_back(rank);
  }
  std::string text = silent.empty()
                         ? "all ranks answer"
                         : message("no word from ", describe(silent),
                                   ": stopped, lost, or at work for so long without a call of keep_alive()");
  for (const auto& [what, ranks] : doing)
    text += message("; ", describe(ranks), ": ", what.empty() ? "before any communication" : what);
  return text;
}

bool Watchdog::am_lowest_heard_since(Clock::time_point since) const {
  return std::none_of(states_.begin(), states_.begin() + rank_,
                      [&](const State& state) { return state.heard >= since; });
}

// Every rank that listens learns of it and does the same, so that each can print its own facts. Ranks that
// answered in the second half of the limit are alive.
void Watchdog::give_up(Clock::time_point now) {
  if (!std::exchange(is_in_vain_, true)) spread(Word::in_vain, now);
  const auto since = now - duration_of(timeout_seconds_ / 2);
  const std::string text =
      message("waited in vain ", flight_recorder().last().text(), ": no rank got on for ", timeout_seconds_,
              " s (GRIDLOPS_TIMEOUT); ", state_of_ranks(since), kept_failure_text());
  if (when_stuck_ == WhenStuck::throw_error)
    throw CommunicationError(text, KnownTo::one_rank, ExitStatus::try_again);
  report(text);
  if (const std::string history = flight_recorder().history(now); !history.empty())
    report(message("before that: ", history));
  const auto end = Clock::now() + (am_lowest_heard_since(since) ? farewell_interval : patience_interval);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
    listen(Clock::now());
  }
  end_job(ExitStatus::try_again);
}

void Watchdog::await_all_ranks() {
  flight_recorder().begin({.state = OperationRecord::State::leaving, .begin = Clock::now()});
  MpiGroup{comm_, rank_, static_cast<int>(states_.size())}.await("MPI_Ibarrier", 0, MPI_Ibarrier, comm_);
}

void WatchedWait::look() {
  Watchdog* const watchdog = Watchdog::current();
  if (watchdog == nullptr) return;
  const auto now = Clock::now();
  if (begin_ == Clock::time_point{}) begin_ = now;
  watchdog->watch(begin_, now);
}

void WatchedWait::leave_processor() {
  if (ranks_outnumber_processors()) std::this_thread::sleep_for(std::chrono::microseconds(10));
}

void look_after_test() {
  if (Watchdog* const watchdog = Watchdog::current()) watchdog->watch_test(Clock::now());
}

// While this rank works, the thread answers.
void keep_alive() {
  Watchdog* const watchdog = Watchdog::current();
  if (watchdog == nullptr || (AtWork::is_here() && watchdog->thread_answers())) return;
  const auto now = Clock::now();
  if (now >= Watchdog::next_answer()) watchdog->answer(now);
}

}  // namespace gridlops
