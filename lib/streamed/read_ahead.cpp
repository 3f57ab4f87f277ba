// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/read_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/at_work.hpp"
#include "base/message.hpp"
#include "comm/failure/job_end.hpp"
#include "gridlops/base/trace.hpp"

namespace gridlops {

namespace {

/// With so many requests of this length at a time, products read at a disk's rate: docs/performance-notes.md.
constexpr Index piece_bytes = Index{4} << 20;
constexpr int threads = 4;

/// Whoever waits for so long says so, and again after twice as long.
constexpr std::chrono::seconds first_patience{10};

}  // namespace

ReadAhead::ReadAhead(const TileFile& file, Ring ring, std::function<void(Index, const std::byte*)> check)
    : file_(file),
      ring_(std::move(ring)),
      pieces_((ring_.slab_bytes + piece_bytes - 1) / piece_bytes),
      check_(std::move(check)),
      slots_(static_cast<std::size_t>(ring_.slots)) {
  for (int k = 0; k < threads; ++k) threads_.emplace_back([this](const std::stop_token& stop) { run(stop); });
}

ReadAhead::~ReadAhead() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ReadAhead::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [this] { return !is_held_ && next_ < oldest_ + ring_.slots; })) {
    const Index turn = next_, piece = next_piece_;
    Slot& slot = slot_of(turn);
    if (piece == 0) slot = {pieces_, {}};
    next_piece_ = (piece + 1) % pieces_;
    if (next_piece_ == 0) ++next_;
    ++in_flight_;
    lock.unlock();
    const Index slab = turn % slabs(), begin = piece * piece_bytes;
    const Index bytes = std::min(piece_bytes, ring_.slab_bytes - begin);
    std::exception_ptr failure;
    const auto attempt = [&](auto&& step) {
      try {
        step();
      } catch (...) {
        failure = std::current_exception();
      }
    };
    attempt([&] {
      file_.read(memory_of(turn) + begin, bytes, ring_.offsets[static_cast<std::size_t>(slab)] + begin);
    });
    lock.lock();
    if (failure && !slot.failure) slot.failure = failure;
    if (slot.left == 1 && !slot.failure) {  // all other pieces are there
      lock.unlock();
      attempt([&] { check_(slab, memory_of(turn)); });
      lock.lock();
      slot.failure = failure;
    }
    --slot.left;
    --in_flight_;
    bytes_read_ += bytes;
    changed_.notify_all();
  }
}

void ReadAhead::begin_pass() {
  std::unique_lock lock(mutex_);
  if (!has_failed_ && (pass_ == oldest_ || pass_ + slabs() == oldest_)) {  // none or all were used
    pass_ = oldest_;
    return;
  }
  const AtWork at_work;
  is_held_ = true;
  changed_.wait(lock, [this] { return in_flight_ == 0; });
  is_held_ = has_failed_ = false;
  pass_ = oldest_ = next_ = pass_ + (next_ - pass_ + slabs()) / slabs() * slabs();
  next_piece_ = 0;
  changed_.notify_all();
}

const std::byte* ReadAhead::get(Index k) {
  const Index turn = pass_ + k;
  Slot& slot = slot_of(turn);
  std::unique_lock lock(mutex_);
  const auto is_there = [&] { return next_ > turn && slot.left == 0; };
  if (!is_there()) {
    const TraceRegion region("wait for the disk");
    const AtWork at_work;
    const auto begin = std::chrono::steady_clock::now();
    const auto waited = [begin] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin);
    };
    for (auto patience = first_patience; !changed_.wait_for(lock, patience, is_there); patience *= 2) {
      lock.unlock();
      report(message("has waited ", static_cast<Index>(waited().count()), " s for ", ring_.slab_bytes,
                     " bytes of A from ", file_.place(), "; is that disk slow, or gone?"));
      lock.lock();
    }
    seconds_waited_ += waited().count();
  }
  has_failed_ = slot.failure != nullptr;
  if (has_failed_) std::rethrow_exception(slot.failure);
  return memory_of(turn);
}

void ReadAhead::release_before(Index k) {
  const std::unique_lock lock(mutex_);
  oldest_ = pass_ + k;
  changed_.notify_all();
}

Index ReadAhead::bytes_read() const {
  const std::unique_lock lock(mutex_);
  return bytes_read_;
}

}  // namespace gridlops
