// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/shared_window.hpp"

namespace gridlops {

/// The transports "shared" and "mixed": ranks of one machine read each other's memory in place. "mixed" is
/// for ranks of several machines. A communicator split off from it is "shared" if its ranks are on one
/// machine.
class SharedCommunicator final : public MpiCommunicator {
 public:
  /// "mixed" takes the first rank on this rank's machine, "shared" none.
  SharedCommunicator(const MpiGroup& group, std::shared_ptr<Traffic> traffic, std::optional<int> machine = {})
      : MpiCommunicator(group, std::move(traffic)), machine_(machine), is_shared_(!machine) {}

  std::string transport() const override { return is_shared_ ? "shared" : "mixed"; }
  PeerAccess peer_access() const override { return is_shared_ ? PeerAccess::in_place : PeerAccess::none; }
  /// The ranks' blocks (collective at the first call). Throws the same error on all ranks if they cannot read
  /// each other's memory.
  SharedWindow& window() {
    if (window_ == nullptr) window_ = std::make_unique<SharedWindow>(*this);
    return *window_;
  }

 private:
  std::unique_ptr<Communicator> make_child(const MpiGroup& group) const override {
    auto child = std::make_unique<SharedCommunicator>(group, traffic_account(), machine_);
    if (machine_) {
      std::array<std::int32_t, 2> ends{*machine_, -*machine_};
      child->all_reduce(ends, ReduceOp::max);
      child->is_shared_ = ends[0] == -ends[1];
    }
    return child;
  }

  std::optional<int> machine_;
  bool is_shared_;
  std::unique_ptr<SharedWindow> window_;
};

}  // namespace gridlops
