// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/job_end.hpp"
#include "comm/failure/rank_news.hpp"
#include "comm/failure/watched_wait.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/base/error.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

using Clock = Watchdog::Clock;
using std::chrono::milliseconds;

constexpr auto look_interval = milliseconds(10), longest_look_interval = milliseconds(1000);
/// How long the rank that ends the job lets the others write their lines, and how long these wait for it.
constexpr auto farewell_interval = milliseconds(1500), patience_interval = milliseconds(4000);

}  // namespace

Watchdog* Watchdog::current_ = nullptr;
Clock::time_point Watchdog::next_answer_ = Clock::time_point::max();

Watchdog::Watchdog(MPI_Comm comm, double timeout_seconds, WhenStuck when_stuck)
    : when_stuck_(when_stuck), news_(comm, timeout_seconds) {
  if (news_.timeout_seconds() == 0) return;
  current_ = this;
  next_answer_ = Clock::now();
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

Watchdog::~Watchdog() {
  thread_ = {};
  Away::end();
  current_ = nullptr;
  next_answer_ = Clock::time_point::max();
}

// While this rank works, its thread answers. While it is in a blocking call of another library, the thread
// waits for the other ranks in its place, but cannot throw in it. While it is in a blocking call of MPI,
// nobody answers: if such a call lasts longer than the limit, the thread says so, and ends the job. The
// thread counts only the time in which it runs itself, so a job may be suspended within a call.
void Watchdog::run_thread(const std::stop_token& stop) {
  constexpr double farewell_seconds = 2;
  const double limit = news_.timeout_seconds(), tick = std::clamp(limit / 8, 0.01, 1.0);
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any end;
  std::uint64_t call = 0;
  double passed = 0;
  Clock::time_point begin;
  Clock::duration pause = duration_of(tick);
  const auto look_after = [&](Away::Reason reason, std::uint64_t number) {
    if (reason == Away::Reason::work) {
      if (thread_may_answer_) hear(Clock::now());
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

template <class Is>
bool Watchdog::am_lowest(const Is& is) const {
  const auto begin = news_.states().begin();
  return std::none_of(begin, begin + news_.rank(), is);
}

void Watchdog::watch(Clock::time_point begin, Clock::time_point now) {
  news_.get_on(begin);
  if (now < next_look_) return;
  const auto unseen = now - std::max(next_look_, begin);
  if (unseen > longest_look_interval) news_.leave_out(unseen - longest_look_interval);
  next_look_ = now + look_interval;
  const bool has_failure = failure_to_tell() != nullptr;
  news_.set_has_failure(has_failure);
  news_.exchange(now);
  if (is_out_of_step()) throw_told();
  if (news_.is_in_vain()) give_up(now);
  const bool am_lowest_to_tell =
      has_failure && am_lowest([](const RankNews::State& state) { return state.has_failure != 0; });
  if (am_lowest_to_tell && all_wait_for(news_.patience(now), now)) tell_failure(now);
  const double idle = seconds_of(now - news_.any_got_on());
  if (idle > news_.timeout_seconds()) give_up(now);
  const int notices = static_cast<int>(idle / RankNews::notice_seconds);
  const auto since = now - duration_of(RankNews::notice_seconds);
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

void Watchdog::hear(Clock::time_point now) {
  news_.get_on(now);
  news_.listen(now);
}

void Watchdog::answer(Clock::time_point now) {
  if (is_out_of_step()) throw_told();
  next_answer_ = now + look_interval;
  news_.set_has_failure(failure_to_tell() != nullptr);
  hear(now);
  if (is_out_of_step()) throw_told();
  if (news_.is_in_vain()) give_up(now);
}

// Each rank has said so itself, and recently. So none computes, and none could wake another.
bool Watchdog::all_wait_for(double seconds, Clock::time_point now) const {
  const auto time = duration_of(seconds);
  return std::all_of(news_.states().begin(), news_.states().end(), [&](const RankNews::State& state) {
    return state.heard - state.got_on > time && now - state.heard < time;
  });
}

void Watchdog::tell_failure(Clock::time_point now) {
  SentFailure failure(failure_to_tell());
  failure.text +=
      " (thrown where the others waited for messages of this rank, so nothing more can be sent, and the job "
      "must end)";
  news_.tell_failure(std::move(failure), now);
  throw_told();
}

void Watchdog::end_communication(const std::string& text) {
  news_.take_failure(SentFailure(std::make_exception_ptr(CommunicationError(text))));
  next_answer_ = {};
}

void Watchdog::throw_told() const { news_.told().rethrow(news_.told_by()); }

std::string Watchdog::state_of_ranks(Clock::time_point since) const {
  std::vector<std::size_t> silent;
  std::map<std::string, std::vector<std::size_t>> doing;
  for (std::size_t rank = 0; rank < news_.states().size(); ++rank) {
    const RankNews::State& state = news_.states()[rank];
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
  return am_lowest([&](const RankNews::State& state) { return state.heard >= since; });
}

// Every rank that listens learns of it and does the same, so that each can print its own facts. Ranks that
// answered in the second half of the limit are alive.
void Watchdog::give_up(Clock::time_point now) {
  news_.tell_in_vain(now);
  const auto since = now - duration_of(news_.timeout_seconds() / 2);
  const std::string text =
      message("waited in vain ", flight_recorder().last().text(), ": no rank got on for ",
              news_.timeout_seconds(), " s (GRIDLOPS_TIMEOUT); ", state_of_ranks(since), kept_failure_text());
  if (when_stuck_ == WhenStuck::throw_error)
    throw CommunicationError(text, KnownTo::one_rank, ExitStatus::try_again);
  report(text);
  if (const std::string history = flight_recorder().history(now); !history.empty())
    report(message("before that: ", history));
  const auto end = Clock::now() + (am_lowest_heard_since(since) ? farewell_interval : patience_interval);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
    news_.listen(Clock::now());
  }
  end_job(ExitStatus::try_again);
}

void Watchdog::await_all_ranks() {
  flight_recorder().begin({.state = OperationRecord::State::leaving, .begin = Clock::now()});
  MpiGroup group = news_.group();
  group.await("MPI_Ibarrier", 0, MPI_Ibarrier, group.comm);
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
