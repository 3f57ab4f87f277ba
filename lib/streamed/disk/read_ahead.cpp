// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/disk/read_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "gridlops/base/trace.hpp"
#include "local/threads.hpp"
#include "streamed/disk/disk_wait.hpp"

namespace gridlops {

ReadAhead::ReadAhead(const PartSource& source, Ring ring, std::vector<Order> passes,
                     std::function<void(Index, const std::byte*)> check)
    : source_(source),
      ring_(ring),
      passes_(std::move(passes)),
      check_(std::move(check)),
      ending_(message("reads from ", source.place(), " to end")),
      slots_(static_cast<std::size_t>(ring_.slots)) {
  read_from(0, 0);
  for (int k = 0; k < threads; ++k)
    threads_.push_back(start_thread([this, staging = ring_.staging + k * ring_.staging_each](
                                        const std::stop_token& stop) { run(stop, staging); }));
}

ReadAhead::~ReadAhead() {
  for (std::jthread& thread : threads_) thread.request_stop();
  std::unique_lock lock(mutex_);
  await_reads(lock);
}

template <class IsDone>
void ReadAhead::await(std::unique_lock<std::mutex>& lock, const IsDone& is_done,
                      const std::string& for_what) {
  const AtWork at_work;
  for (DiskPatience patience; !changed_.wait_for(lock, patience.next(), is_done);) {
    lock.unlock();
    patience.tell(for_what);
    lock.lock();
  }
}

void ReadAhead::await_reads(std::unique_lock<std::mutex>& lock) {
  await(
      lock, [this] { return in_flight_ == 0; }, ending_);
}

/// The next part to be read is the k-th of the pass, or the first one of those that follow it.
void ReadAhead::read_from(Index pass, Index k) {
  for (std::size_t passes = 0; passes <= passes_.size(); ++passes) {
    next_pass_ = pass;
    next_part_ = k;
    next_piece_ = 0;
    has_next_ = k < std::ssize(passes_[at(pass)].parts);
    if (has_next_) return;
    pass = passes_[at(pass)].next;
    k = 0;
  }
}

void ReadAhead::run(const std::stop_token& stop, std::byte* staging) {
  std::unique_lock lock(mutex_);
  const auto has_work = [this] { return has_next_ && !is_held_ && next_ < oldest_ + ring_.slots; };
  while (changed_.wait(lock, stop, has_work) && !stop.stop_requested()) {
    const Index turn = next_, piece = next_piece_++;
    const Index part = passes_[at(next_pass_)].parts[at(next_part_)], pieces = source_.pieces(part);
    Slot& slot = slot_of(turn);
    if (piece == 0) slot = {pieces, {}};
    if (piece + 1 == pieces) {
      ++next_;
      read_from(next_pass_, next_part_ + 1);
    }
    ++in_flight_;
    lock.unlock();
    Index bytes = 0;
    std::exception_ptr failure;
    const auto attempt = [&](auto&& step) {
      try {
        step();
      } catch (...) {
        failure = std::current_exception();
      }
    };
    attempt([&] { bytes = source_.read(part, piece, memory_of(turn), staging); });
    lock.lock();
    if (failure && !slot.failure) slot.failure = failure;
    if (slot.left == 1 && !slot.failure) {  // all other pieces are there
      lock.unlock();
      attempt([&] { check_(part, memory_of(turn)); });
      lock.lock();
      slot.failure = failure;
    }
    --slot.left;
    --in_flight_;
    bytes_read_ += bytes;
    changed_.notify_all();
  }
}

void ReadAhead::begin_pass(Index pass) {
  std::unique_lock lock(mutex_);
  const Order& last = passes_[at(pass_)];
  const bool used_none = oldest_ == first_, used_all = oldest_ == first_ + std::ssize(last.parts);
  const bool is_read_ahead =
      !has_failed_ && ((used_none && pass == pass_) || (used_all && pass == last.next));
  if (!is_read_ahead) {
    is_held_ = true;
    await_reads(lock);
    is_held_ = has_failed_ = false;
    oldest_ = next_;
    read_from(pass, 0);
    changed_.notify_all();
  }
  pass_ = pass;
  first_ = oldest_;
}

const std::byte* ReadAhead::get(Index k) {
  const Index turn = first_ + k;
  Slot& slot = slot_of(turn);
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return next_ > turn && slot.left == 0; };
  if (!is_there()) {
    const TraceRegion region("wait for the disk");
    const auto begin = std::chrono::steady_clock::now();
    const Index bytes = source_.bytes(passes_[at(pass_)].parts[at(k)]);
    await(lock, is_there, message(bytes, " bytes of A from ", source_.place()));
    seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  has_failed_ = slot.failure != nullptr;
  if (has_failed_) std::rethrow_exception(slot.failure);
  return memory_of(turn);
}

void ReadAhead::release_before(Index k) {
  const std::unique_lock lock(mutex_);
  oldest_ = first_ + k;
  changed_.notify_all();
}

Index ReadAhead::bytes_read() const {
  const std::unique_lock lock(mutex_);
  return bytes_read_;
}

}  // namespace gridlops
