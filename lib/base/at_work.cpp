// SPDX-License-Identifier: BSD-3-Clause
#include "base/at_work.hpp"

#include <mutex>

namespace gridlops {

namespace {

enum class Role { other, communicates, is_away };

std::mutex presence;  // held by the thread that communicates, unless it is away
thread_local Role thread_role = Role::other;
Away::Reason last_reason = Away::Reason::work;
std::uint64_t times = 0;

}  // namespace

Away::Away(Reason reason) noexcept : is_outermost_(thread_role == Role::communicates) {
  if (!is_outermost_) return;
  last_reason = reason;
  ++times;
  thread_role = Role::is_away;
  presence.unlock();
}

Away::~Away() {
  if (!is_outermost_) return;
  presence.lock();
  thread_role = Role::communicates;
}

bool Away::is_here() noexcept { return thread_role == Role::is_away; }

std::uint64_t Away::count() noexcept { return times; }

void Away::begin() {
  presence.lock();
  thread_role = Role::communicates;
}

void Away::end() noexcept {
  if (thread_role != Role::communicates) return;
  thread_role = Role::other;
  presence.unlock();
}

void Away::meanwhile(const std::function<void(Reason, std::uint64_t)>& look_after) {
  const std::unique_lock lock(presence, std::try_to_lock);
  if (lock.owns_lock()) look_after(last_reason, times);
}

}  // namespace gridlops
