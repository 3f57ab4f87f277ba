// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <utility>

#include "base/trace_record.hpp"
#include "comm/call_account.hpp"

namespace gridlops {

/// Counts what is sent during its lifetime apart, and the time as waiting.
class AgreementAccount {
 public:
  explicit AgreementAccount(Communicator& comm)
      : region_("agree"),
        is_agreeing_(comm.is_agreeing_),
        was_agreeing_(std::exchange(comm.is_agreeing_, true)),
        traffic_(*comm.traffic_),
        before_(traffic_),
        time_(traffic_) {}
  AgreementAccount(const AgreementAccount&) = delete;
  AgreementAccount& operator=(const AgreementAccount&) = delete;
  ~AgreementAccount() {
    Traffic after = before_;
    after.agreement_bytes += traffic_.bytes_sent - before_.bytes_sent;
    ++after.agreements;
    traffic_ = after;
    is_agreeing_ = was_agreeing_;
  }

 private:
  const OperationRegion region_;
  bool& is_agreeing_;
  const bool was_agreeing_;
  Traffic& traffic_;
  const Traffic before_;
  const WaitingTime time_;
};

}  // namespace gridlops
