// SPDX-License-Identifier: BSD-3-Clause
#include "comm/operation_record.hpp"

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

std::string OperationRecord::text() const {
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
  const std::string partner = peer < 0 ? "" : message(", ", role_of_peer(operation), peer);
  return message(moment(), name_of(operation), " (", bytes, " bytes", partner, "; rank ", rank, " of ", size,
                 ")");
}

OperationRecord& last_operation() {
  static OperationRecord record;
  return record;
}

}  // namespace gridlops
