// SPDX-License-Identifier: BSD-3-Clause
#include "comm/flight_recorder.hpp"

#include <atomic>
#include <chrono>
#include <thread>

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

bool is_whole(const OperationRecord& record) {
  const OperationRecord expected = record_of(record.number);
  const bool is_in_state = record.state == (record.number % 2 == 0 ? State::returned : State::waiting) ||
                           record.state == State::running;
  return is_in_state && record.operation == expected.operation && record.bytes == expected.bytes &&
         record.peer == expected.peer && record.rank == expected.rank && record.size == expected.size &&
         record.begin == expected.begin;
}

}  // namespace

// As the watchdog's thread reads while the other communicates.
TEST_CASE("A record that another thread reads is whole") {
  FlightRecorder recorder;
  recorder.begin(record_of(0));
  std::atomic<bool> is_over = false;
  std::atomic<long> torn = 0, seen = 0;
  Index last = 0;
  std::thread reader([&] {
    while (!is_over.load()) {
      const OperationRecord record = recorder.last();
      if (!is_whole(record) || record.number < last) ++torn;
      if (record.number != last) ++seen;
      last = record.number;
    }
  });
  const auto end = Clock::now() + std::chrono::milliseconds(500);
  Index number = 0;
  do {
    for (int k = 0; k < 1000; ++k) {
      recorder.begin(record_of(++number));
      recorder.set_state(number % 2 == 0 ? State::returned : State::waiting);
    }
  } while (Clock::now() < end || (seen.load() < 100 && Clock::now() < end + std::chrono::seconds(20)));
  is_over = true;
  reader.join();
  CHECK(torn.load() == 0);
  CHECK(seen.load() >= 100);
  CHECK(recorder.last().number == number);
}

TEST_CASE("A recorder has the operation that was begun last, and its state") {
  FlightRecorder recorder;
  CHECK(recorder.last().state == State::none);
  for (Index number = 1; number <= 200; ++number) {
    recorder.begin(record_of(number));
    CHECK(recorder.last().state == State::running);
    recorder.set_state(State::returned);
    CHECK(recorder.last().state == State::returned);
    CHECK(recorder.last().number == number);
    CHECK(recorder.begin_of_last() == record_of(number).begin);
  }
}
