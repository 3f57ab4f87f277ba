// SPDX-License-Identifier: BSD-3-Clause
#include "comm/watchdog.hpp"

#include <sched.h>
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

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/agreement.hpp"
#include "comm/failure_scope.hpp"
#include "comm/job_end.hpp"
#include "comm/mpi_transfer.hpp"
#include "comm/watched_wait.hpp"
#include "gridlops/error.hpp"
#include "gridlops/mpi.hpp"

namespace gridlops {

namespace {

using Clock = Watchdog::Clock;
using std::chrono::milliseconds;

constexpr int word_tag = 1;
constexpr double notice_seconds = 60;
constexpr auto look_interval = milliseconds(10), longest_look_interval = milliseconds(1000);
/// How long ranks that wait in vain listen for what the others do.
constexpr auto last_words_interval = milliseconds(1000);
/// How long the rank that ends the job leaves the others to write their lines, and these leave it.
constexpr auto farewell_interval = milliseconds(1500), patience_interval = milliseconds(4000);

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// Looks after blocking calls of MPI, in which nothing polls: prints when one lasts for longer than the
/// limit, and ends the job. It counts seconds in which this thread runs, so jobs may be suspended within a
/// call.
void watch_blocking_calls(const std::stop_token& stop, double limit, WhenStuck when_stuck) {
  constexpr double longest_limit = 1e9;
  constexpr int farewell_seconds = 2;
  const auto limit_seconds = static_cast<int>(std::ceil(std::min(limit, longest_limit)));
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any end;
  std::uint64_t call = 0;
  int passed = 0;
  while (!end.wait_for(lock, stop, std::chrono::seconds(1), [&] { return stop.stop_requested(); })) {
    const std::uint64_t before = std::exchange(call, BlockingCall::number());
    passed = call != 0 && call == before ? passed + 1 : 0;
    if (passed == limit_seconds)
      report(message("waited in vain ", flight_recorder().last().text(),
                     ": all ranks began it, and it lasts for longer than ", limit,
                     " s (GRIDLOPS_TIMEOUT); a rank stopped, or was lost, within it"));
    if (passed == limit_seconds + farewell_seconds && when_stuck == WhenStuck::end_job)
      _exit(static_cast<int>(ExitStatus::try_again));
  }
}

/// Which leaves signals to the others.
std::jthread thread_of_blocking_calls(double limit, WhenStuck when_stuck) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::jthread thread([=](const std::stop_token& stop) { watch_blocking_calls(stop, limit, when_stuck); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

/// What ranks send each other.
struct Watchdog::Word {
  enum Kind { question, answer, in_vain, failed };
  int kind = question;
  double idle_seconds = 0;  // since the sender got on
  OperationRecord doing;
  std::int32_t has_failure = 0;                  // which the sender has yet to tell
  std::int32_t kind_of_failure = 0, status = 0;  // of what failed; its text follows
};

/// Another rank.
struct Watchdog::Peer {
  Clock::time_point asked{}, heard{}, got_on{};
  OperationRecord doing;
  bool has_failure = false;
  std::string outgoing;  // a word, and a text
  MPI_Request request = MPI_REQUEST_NULL;
};

Watchdog* Watchdog::current_ = nullptr;
Clock::time_point Watchdog::next_answer_ = Clock::time_point::max();

Watchdog::Watchdog(MPI_Comm comm, double timeout_seconds, WhenStuck when_stuck)
    : timeout_seconds_(timeout_seconds), when_stuck_(when_stuck), got_on_(Clock::now()) {
  MpiGroup group{comm};
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  rank_ = group.rank;
  peers_.resize(at(group.size));
  group.check(MPI_Comm_dup(comm, &comm_), "MPI_Comm_dup", 0);
  group.check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", 0);
  group.check(MPI_Bcast(&timeout_seconds_, 1, MPI_DOUBLE, 0, comm_), "MPI_Bcast", 1);
  if (timeout_seconds_ == 0) return;
  current_ = this;
  next_answer_ = got_on_;
  thread_ = thread_of_blocking_calls(timeout_seconds_, when_stuck_);
}

// A word that is still on its way is read from where it lies, which is then leaked.
Watchdog::~Watchdog() {
  current_ = nullptr;
  next_answer_ = Clock::time_point::max();
  if (!mpi_is_running()) return;
  listen(Clock::now());
  const auto is_sent = [](Peer& peer) {
    int done = 0;
    return MPI_Test(&peer.request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done != 0;
  };
  if (!std::all_of(peers_.begin(), peers_.end(), is_sent))
    new (std::nothrow) std::vector<Peer>(std::move(peers_));
  if (!is_in_vain_ && !is_out_of_step() && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

double Watchdog::set_timeout_seconds(double seconds) { return std::exchange(timeout_seconds_, seconds); }

void Watchdog::watch(Clock::time_point begin, Clock::time_point now) {
  got_on_ = std::max(got_on_, begin);
  if (now < next_look_) return;
  const auto unseen = now - std::max(next_look_, begin);
  if (unseen > longest_look_interval) leave_out(unseen - longest_look_interval);
  next_look_ = now + look_interval;
  listen(now);
  ask(now);
  if (is_out_of_step()) throw_told();
  if (is_in_vain_) give_up(now);
  const bool am_lowest_to_tell =
      failure_to_tell() != nullptr &&
      std::none_of(peers_.begin(), peers_.begin() + rank_, [](const Peer& peer) { return peer.has_failure; });
  if (am_lowest_to_tell && all_wait_for(patience(), now)) tell_failure(now);
  const double idle = seconds(now - last_got_on());
  if (idle > timeout_seconds_) give_up(now);
  const int notices = static_cast<int>(idle / notice_seconds);
  if (notices > notices_) {
    const auto since = now - duration_of(notice_seconds);
    const bool am_lowest = std::all_of(peers_.begin(), peers_.begin() + rank_,
                                       [&](const Peer& peer) { return peer.heard < since; });
    if (am_lowest)
      report(message("waits since ", static_cast<int>(idle), " s ", flight_recorder().last().text(), "; ",
                     state_of_ranks(since)));
  }
  notices_ = notices;
}

// A rank that was stopped itself, or suspended with its job, cannot tell how long others were silent. On a
// machine that is too busy to let it look, some of the time still counts.
void Watchdog::leave_out(Clock::duration time) {
  got_on_ += time;
  for (Peer& peer : peers_) peer.got_on += time;
}

void Watchdog::answer(Clock::time_point now) {
  got_on_ = now;
  next_answer_ = now + look_interval;
  listen(now);
  if (is_out_of_step()) throw_told();
  if (is_in_vain_) give_up(now);
}

void Watchdog::listen(Clock::time_point now) {
  for (;;) {
    int is_there = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, word_tag, comm_, &is_there, &status) != MPI_SUCCESS || is_there == 0)
      return;
    int length = 0;
    MPI_Get_count(&status, MPI_BYTE, &length);
    std::string text(at(length), '\0');
    if (MPI_Recv(text.data(), length, MPI_BYTE, status.MPI_SOURCE, word_tag, comm_, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
      return;
    Word word;
    std::memcpy(static_cast<void*>(&word), text.data(), sizeof word);
    Peer& peer = peers_[at(status.MPI_SOURCE)];
    peer.heard = now;
    peer.got_on = now - duration_of(word.idle_seconds);
    peer.doing = word.doing;
    peer.has_failure = word.has_failure != 0;
    if (word.kind == Word::question) say(status.MPI_SOURCE, Word::answer, now);
    if (word.kind == Word::in_vain) is_in_vain_ = true;
    if (word.kind == Word::failed && !is_out_of_step()) {
      set_ranks_out_of_step(true);
      told_by_ = status.MPI_SOURCE;
      told_.kind = word.kind_of_failure;
      told_.status = word.status;
      told_.text = text.substr(sizeof word);
    }
  }
}

// A rank that does not answer is asked rarely: what it does not take stays in its memory.
void Watchdog::ask(Clock::time_point now) {
  constexpr double longest = 5;
  const auto interval = duration_of(std::min(patience() / 8, longest));
  if (now - got_on_ < interval) return;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    Peer& peer = peers_[at(rank)];
    const bool has_answered = peer.heard >= peer.asked;
    if (rank == rank_ || now - std::max(peer.asked, peer.heard) < (has_answered ? interval : 8 * interval))
      continue;
    peer.asked = now;
    say(rank, Word::question, now);
  }
}

bool Watchdog::say(int rank, int kind, Clock::time_point now, const SentFailure& failure) {
  Peer& peer = peers_[at(rank)];
  int is_sent = 0;
  if (MPI_Test(&peer.request, &is_sent, MPI_STATUS_IGNORE) != MPI_SUCCESS || is_sent == 0) return false;
  const Word word{
      kind,         seconds(now - got_on_), flight_recorder().last(), failure_to_tell() != nullptr,
      failure.kind, failure.status};
  peer.outgoing.assign(sizeof word, '\0');
  std::memcpy(peer.outgoing.data(), static_cast<const void*>(&word), sizeof word);
  peer.outgoing += failure.text;
  MPI_Isend(peer.outgoing.data(), static_cast<int>(peer.outgoing.size()), MPI_BYTE, rank, word_tag, comm_,
            &peer.request);
  return true;
}

double Watchdog::patience() const {
  constexpr double longest_with_failure = 5;
  return failure_to_tell() == nullptr ? timeout_seconds_
                                      : std::min(timeout_seconds_ / 2, longest_with_failure);
}

// As each rank has said itself, a moment ago. So it does not compute, nor could another wake it.
bool Watchdog::all_wait_for(double seconds, Clock::time_point now) const {
  const auto time = duration_of(seconds);
  bool all_wait = now - got_on_ > time;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    const Peer& peer = peers_[at(rank)];
    all_wait =
        all_wait && (rank == rank_ || (peer.heard - peer.got_on > time && now - peer.heard < time / 2));
  }
  return all_wait;
}

void Watchdog::tell_failure(Clock::time_point now) {
  told_ = SentFailure(failure_to_tell());
  told_.text +=
      " (thrown where the others waited for messages of this rank, so nothing more can be sent, and the job "
      "must end)";
  std::vector<bool> is_said(peers_.size(), false);
  const auto end = now + last_words_interval;
  for (bool all_have_heard = false; !all_have_heard && Clock::now() < end;) {
    all_have_heard = true;
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      if (rank == rank_) continue;
      int is_sent = 0;
      if (is_said[at(rank)]) {
        MPI_Test(&peers_[at(rank)].request, &is_sent, MPI_STATUS_IGNORE);
      } else {
        is_said[at(rank)] = say(rank, Word::failed, now, told_);
      }
      all_have_heard = all_have_heard && is_sent != 0;
    }
    if (!all_have_heard) std::this_thread::sleep_for(milliseconds(1));
  }
  told_by_ = rank_;
  set_ranks_out_of_step(true);
  throw_told();
}

void Watchdog::forget_failure() {
  told_by_ = -1;
  set_ranks_out_of_step(false);
}

void Watchdog::throw_told() const { rethrow(told_by_, told_); }

Clock::time_point Watchdog::last_got_on() const {
  Clock::time_point last = got_on_;
  for (const Peer& peer : peers_) last = std::max(last, peer.got_on);
  return last;
}

std::string Watchdog::state_of_ranks(Clock::time_point since) const {
  std::vector<std::size_t> silent;
  std::map<std::string, std::vector<std::size_t>> doing;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const bool is_me = rank == static_cast<std::size_t>(rank_);
    if (!is_me && peer.heard < since) {
      silent.push_back(rank);
    } else {
      const OperationRecord& record = is_me ? flight_recorder().last() : peer.doing;
      doing[record.text_of_all_ranks()].push_back(rank);
    }
  }
  std::string text = silent.empty()
                         ? "all ranks answer"
                         : message("no word from ", describe(silent),
                                   ": stopped, lost, or at work for so long without a call of keep_alive()");
  for (const auto& [what, ranks] : doing)
    text += message("; ", describe(ranks), ": ", what.empty() ? "before any communication" : what);
  return text;
}

// All ranks that listen hear of it and do the same, so that each can say what it knows.
void Watchdog::give_up(Clock::time_point now) {
  const auto begin = now;
  is_in_vain_ = true;
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank)
    if (rank != rank_) say(rank, Word::in_vain, now);
  const auto is_alive = [&](const Peer& peer) { return peer.heard >= begin; };
  const auto is_alive_or_me = [&](const Peer& peer) { return &peer == &peers_[at(rank_)] || is_alive(peer); };
  while (!std::all_of(peers_.begin(), peers_.end(), is_alive_or_me) && now < begin + last_words_interval) {
    std::this_thread::sleep_for(milliseconds(1));
    now = Clock::now();
    listen(now);
  }
  const std::string text =
      message("waited in vain ", flight_recorder().last().text(), ": no rank got on for ", timeout_seconds_,
              " s (GRIDLOPS_TIMEOUT); ", state_of_ranks(begin), kept_failure_text());
  if (when_stuck_ == WhenStuck::throw_error)
    throw CommunicationError(text, KnownTo::one_rank, ExitStatus::try_again);
  report(text);
  if (const std::string history = flight_recorder().history(now); !history.empty())
    report(message("before that: ", history));
  const bool am_lowest = std::none_of(peers_.begin(), peers_.begin() + rank_, is_alive);
  const auto end = Clock::now() + (am_lowest ? farewell_interval : patience_interval);
  while (Clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
    listen(Clock::now());
  }
  end_job(ExitStatus::try_again);
}

void Watchdog::await_all_ranks() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comm_, &all_here) != MPI_SUCCESS) return;
  const auto begin = Clock::now();
  flight_recorder().begin({.state = OperationRecord::State::leaving, .begin = begin});
  for (int done = 0; MPI_Test(&all_here, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;) {
    const auto now = Clock::now();
    if (current_ != nullptr) watch(begin, now);
    if (now - begin < milliseconds(1)) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }
}

void WatchedWait::look() {
  Watchdog* const watchdog = Watchdog::current();
  if (watchdog == nullptr) return;
  const auto now = Clock::now();
  if (begin_ == Clock::time_point{}) begin_ = now;
  watchdog->watch(begin_, now);
}

void keep_alive() {
  Watchdog* const watchdog = Watchdog::current();
  if (watchdog == nullptr) return;
  const auto now = Clock::now();
  if (now >= Watchdog::next_answer()) watchdog->answer(now);
}

}  // namespace gridlops
