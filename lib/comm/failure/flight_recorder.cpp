// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/flight_recorder.hpp"

#include <algorithm>

#include "base/message.hpp"

namespace gridlops {

const char* name_of(CommOperation operation) {
  switch (operation) {
    case CommOperation::barrier:
      return "barrier";
    case CommOperation::broadcast:
      return "broadcast";
    case CommOperation::reduce:
      return "reduce";
    case CommOperation::all_reduce:
      return "all_reduce";
    case CommOperation::gather:
      return "gather";
    case CommOperation::scatter:
      return "scatter";
    case CommOperation::all_gather:
      return "all_gather";
    case CommOperation::reduce_scatter:
      return "reduce_scatter";
    case CommOperation::all_to_all:
      return "all_to_all";
    case CommOperation::send:
      return "send";
    case CommOperation::receive:
      return "receive";
    case CommOperation::get:
      return "get";
    case CommOperation::split:
      break;
  }
  return "split";
}

namespace {

const char* role_of_peer(CommOperation operation) {
  switch (operation) {
    case CommOperation::send:
      return "to rank ";
    case CommOperation::receive:
    case CommOperation::get:
      return "from rank ";
    default:
      return "root ";
  }
}

}  // namespace

std::string OperationRecord::text(const std::string& rank_and_size) const {
  const auto moment = [this] {
    switch (state) {
      case State::running:
        return "in ";
      case State::waiting:
        return "waiting for a request, last started: ";
      default:
        return "after ";
    }
  };
  if (state == State::none) return "";
  if (state == State::leaving) return "at the end of its session";
  const std::string which = number == 0 ? "" : message(" #", number);
  const std::string partner = peer < 0 ? "" : message(", ", role_of_peer(operation), peer);
  return message(moment(), name_of(operation), which, " (", bytes, " bytes", partner, "; ", rank_and_size,
                 ")");
}

std::string OperationRecord::text() const { return text(message("rank ", rank, " of ", size)); }

std::string OperationRecord::text_of_all_ranks() const { return text(message(size, " ranks")); }

std::string FlightRecorder::history(OperationRecord::Clock::time_point now) const {
  constexpr std::uint64_t shown = 8;
  std::string text;
  for (std::uint64_t k = 1; k <= std::min(shown, count_); ++k) {
    const OperationRecord& record = ring_[(count_ - k) % ring_.size()];
    if (record.state == OperationRecord::State::none) break;
    const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - record.begin).count();
    text += message(text.empty() ? "" : "; ", record.text(), " ", age, " ms ago");
  }
  return text;
}

FlightRecorder& flight_recorder() {
  static FlightRecorder recorder;
  return recorder;
}

}  // namespace gridlops
