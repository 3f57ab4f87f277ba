// SPDX-License-Identifier: BSD-3-Clause
#include <exception>
#include <optional>
#include <utility>

#include "comm/operation_record.hpp"
#include "comm/waiting_time.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

PendingOperation::~PendingOperation() = default;

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    drop();
    pending_ = std::move(other.pending_);
    account_ = std::move(other.account_);
  }
  return *this;
}

Request::~Request() { drop(); }

void Request::wait() {
  if (pending_ == nullptr) return;
  last_operation().state = OperationRecord::State::waiting;
  {
    std::optional<WaitingTime> time;
    if (account_ != nullptr) time.emplace(*account_);
    pending_->wait();
  }
  pending_.reset();
  last_operation().state = OperationRecord::State::returned;
}

bool Request::test() {
  if (pending_ != nullptr && pending_->test()) pending_.reset();
  return pending_ == nullptr;
}

// Leaked rather than deleted: the transport may still write to the buffers that the operation holds.
void Request::drop() noexcept {
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(pending_.release());
  } else {
    wait();
  }
}

}  // namespace gridlops
