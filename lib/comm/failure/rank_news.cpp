// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/rank_news.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <thread>
#include <utility>

#include "base/numbers.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

using Clock = RankNews::Clock;
using std::chrono::milliseconds;

constexpr int word_tag = 1;
/// The time within which all ranks learn that one has a failure to tell.
constexpr auto impatience_interval = milliseconds(10'000);
/// How long a rank tries to reach its neighbours before it ends.
constexpr auto last_words_interval = milliseconds(1000);

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
struct RankNews::Word {
  enum Kind { question, answer, in_vain, failed };
  std::int32_t kind;
  std::int32_t is_of_all;
  Clock::time_point any_got_on, failure_heard;
  std::int32_t told_by, type_of_failure, status;  // of the failure
};

RankNews::RankNews(MPI_Comm comm, double timeout_seconds)
    : timeout_seconds_(timeout_seconds), got_on_(Clock::now()), any_got_on_(got_on_) {
  MpiGroup group = MpiGroup::of(comm, true);
  rank_ = group.rank;
  states_.resize(at(group.size));
  for (const int rank : neighbours_of(rank_, group.size)) neighbours_.push_back({rank});
  while (1 << steps_ < group.size) ++steps_;
  BlockingCall(group).run("MPI_Comm_dup", 0, MPI_Comm_dup, comm, &comm_);
  group.check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", 0);
  group.comm = comm_;
  group.await("MPI_Ibcast", 1, MPI_Ibcast, &timeout_seconds_, 1, MPI_DOUBLE, 0, comm_);
}

// Leaks the memory of messages that are still on their way.
RankNews::~RankNews() {
  if (!mpi_is_running()) return;
  listen(Clock::now());
  const auto is_done = [](auto& one) { return is_over(one.request); };
  if (!std::all_of(neighbours_.begin(), neighbours_.end(), is_done) || !incoming_.empty())
    new (std::nothrow) std::pair(std::move(neighbours_), std::move(incoming_));
  if (!is_in_vain_ && !is_out_of_step() && std::uncaught_exceptions() == 0) MPI_Comm_free(&comm_);
}

MpiGroup RankNews::group() const { return {comm_, rank_, static_cast<int>(states_.size())}; }

void RankNews::note_own_state(Clock::time_point now) {
  any_got_on_ = std::max(any_got_on_, got_on_);
  if (has_failure_) failure_heard_ = now;
  states_[at(rank_)] = {now, got_on_, flight_recorder().last(), has_failure_};
}

void RankNews::exchange(Clock::time_point now) {
  note_own_state(now);
  listen(now);
  ask(now);
}

// A rank that was stopped, or suspended with its job, cannot tell how long others were silent. If the machine
// is merely too busy to let the rank look, part of the time still counts.
void RankNews::leave_out(Clock::duration time) {
  got_on_ += time;
  any_got_on_ += time;
  for (State& state : states_) state.got_on += time;
}

void RankNews::listen(Clock::time_point now) {
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

void RankNews::hear(const std::string& text, int from, Clock::time_point now) {
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
  if (word.kind == Word::in_vain) tell_in_vain(now);
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
void RankNews::ask(Clock::time_point now) {
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
std::string RankNews::words(int kind, Clock::time_point now) {
  note_own_state(now);
  const bool is_of_all = seconds_of(now - any_got_on_) > std::min(patience(now), notice_seconds) / 2;
  const auto since_start = now.time_since_epoch();
  std::string text;
  append(text, Word{kind, is_of_all, any_got_on_ - since_start, failure_heard_ - since_start, told_by_,
                    told_.type, told_.status});
  for (const State& state : states_)
    if (is_of_all || &state == &states_[at(rank_)]) append(text, state.later(-since_start));
  return text + told_.text;
}

bool RankNews::say(Letter& neighbour, int kind, Clock::time_point now) {
  if (!is_over(neighbour.request)) return false;
  neighbour.text = words(kind, now);
  MPI_Isend(neighbour.text.data(), static_cast<int>(neighbour.text.size()), MPI_BYTE, neighbour.rank,
            word_tag, comm_, &neighbour.request);
  return true;
}

void RankNews::spread(int kind, Clock::time_point now) {
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

double RankNews::patience(Clock::time_point now) const {
  constexpr double longest_with_failure = 5;
  return now - failure_heard_ < impatience_interval ? std::min(timeout_seconds_ / 2, longest_with_failure)
                                                    : timeout_seconds_;
}

void RankNews::tell_in_vain(Clock::time_point now) {
  if (!std::exchange(is_in_vain_, true)) spread(Word::in_vain, now);
}

void RankNews::tell_failure(SentFailure failure, Clock::time_point now) {
  take_failure(std::move(failure));
  spread(Word::failed, now);
}

void RankNews::take_failure(SentFailure failure) {
  told_ = std::move(failure);
  told_by_ = rank_;
  set_ranks_out_of_step(true);
}

// Neighbours pass a failure on to each other. After the barrier all these messages have arrived.
void RankNews::forget_failure() {
  MPI_Request all_here = MPI_REQUEST_NULL;
  MPI_Ibarrier(comm_, &all_here);
  while (!is_over(all_here)) listen(Clock::now());
  listen(Clock::now());
  told_by_ = -1;
  told_ = {};
  set_ranks_out_of_step(false);
}

}  // namespace gridlops
