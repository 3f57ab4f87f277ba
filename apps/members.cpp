// SPDX-License-Identifier: BSD-3-Clause
#include "members.hpp"

#include <array>
#include <string>
#include <thread>

namespace gridlops::program {

namespace {

/// As request.wait(), but leaves the processor to others.
void sleep_until_done(Request request) {
  while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

void run_on_members(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work) {
  ExitStatus status = ExitStatus::done;
  std::string text;
  if (grid.is_member()) {
    try {
      work();
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
      status = error.status();
      text = error.what();
    }
  }
  std::array<std::int32_t, 1> outcome{static_cast<std::int32_t>(status)};
  sleep_until_done(world.start_broadcast(outcome, 0));
  status = static_cast<ExitStatus>(outcome[0]);
  if (status != ExitStatus::done) throw Error(status, broadcast_text(world, text, 0));
}

}  // namespace gridlops::program
