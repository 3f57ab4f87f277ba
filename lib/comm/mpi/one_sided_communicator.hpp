// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <utility>

#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_window.hpp"

namespace gridlops {

/// The transport "one-sided": ranks get blocks of others through a window of MPI.
class OneSidedCommunicator final : public MpiCommunicator {
 public:
  OneSidedCommunicator(const MpiGroup& group, std::shared_ptr<Traffic> traffic,
                       std::shared_ptr<MpiWindow> mpi_window)
      : MpiCommunicator(group, std::move(traffic)), mpi_window_(std::move(mpi_window)) {}

  std::string transport() const override { return "one-sided"; }
  PeerAccess peer_access() const override { return PeerAccess::get; }
  /// The ranks' blocks (collective at the first call).
  RmaWindow& window() {
    if (window_ == nullptr) window_ = std::make_unique<RmaWindow>(*this, group(), mpi_window_);
    return *window_;
  }

 private:
  std::unique_ptr<Communicator> make_child(const MpiGroup& group) const override {
    return std::make_unique<OneSidedCommunicator>(group, traffic_account(), mpi_window_);
  }

  std::shared_ptr<MpiWindow> mpi_window_;
  std::unique_ptr<RmaWindow> window_;
};

}  // namespace gridlops
