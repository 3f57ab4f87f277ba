// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/flight_recorder.hpp"

#include <chrono>

#include "support/catch.hpp"

using namespace gridlops;

namespace {

using State = OperationRecord::State;
using Clock = OperationRecord::Clock;

/// Whose members all follow from one number.
OperationRecord record_of(Index number) {
  const auto small = static_cast<std::int32_t>(number % 1000);
  return {State::running, CommOperation::send, number,    3 * number,
          small,          small + 1,           small + 2, Clock::time_point(Clock::duration(number))};
}

}  // namespace

TEST_CASE("A recorder has the operation that was begun last, and its state") {
  FlightRecorder recorder;
  CHECK(recorder.last().state == State::none);
  for (Index number = 1; number <= 200; ++number) {
    recorder.begin(record_of(number));
    CHECK(recorder.last().state == State::running);
    recorder.set_state(State::returned);
    CHECK(recorder.last().state == State::returned);
    CHECK(recorder.last().number == number);
    CHECK(recorder.last().begin == record_of(number).begin);
  }
}
