// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "cuda/device_communicator.hpp"
#include "cuda/staged_transfer.hpp"

namespace gridlops::cuda {

/// Device operands travel through the host, by the host communicator.
class StagedCommunicator : public DeviceCommunicator {
 public:
  StagedCommunicator(std::unique_ptr<Communicator> host, std::shared_ptr<DeviceContext> context,
                     std::shared_ptr<Traffic> traffic)
      : DeviceCommunicator(std::move(host), std::move(context), std::move(traffic)) {}

  std::string transport() const override { return host().transport() + "-staged"; }

 protected:
  std::unique_ptr<Communicator> split_device(std::unique_ptr<Communicator> child_host,
                                             std::optional<int> color, int key) override;
  Pending broadcast_device(Elements data, int root) override;
  Pending reduce_device(ConstElements in, Elements out, ReduceOp op, int root, ReductionOrder order) override;
  Pending all_reduce_device(Elements data, ReduceOp op, ReductionOrder order) override;
  Pending gather_device(ConstElements mine, Elements all, std::span<const Index> counts, int root) override;
  Pending scatter_device(ConstElements all, std::span<const Index> counts, Elements mine, int root) override;
  Pending all_gather_device(ConstElements mine, Elements all, std::span<const Index> counts) override;
  Pending reduce_scatter_device(ConstElements all, std::span<const Index> counts, Elements mine, ReduceOp op,
                                ReductionOrder order) override;
  Pending all_to_all_device(ConstElements send, std::span<const Index> send_counts, Elements receive,
                            std::span<const Index> receive_counts) override;

 private:
  /// One operation on the whole: start(in, out) on host memory; `out` may be empty.
  template <class Start>
  Pending at_once(const ConstElements& in, const Elements& out, const Start& start);
};

}  // namespace gridlops::cuda
