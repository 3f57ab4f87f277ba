// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "cuda/device_communicator.hpp"
#include "cuda/staged_transfer.hpp"
#include "gridlops/backend.hpp"

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

/// Device operands travel by an MPI that takes them as they are, which mpi_takes_device_memory() has shown.
/// MPI knows nothing of streams: what the device was given before is waited for on the host. Reductions are
/// staged all the same, since moving memory is what was shown, not adding it, and so is all_to_all, where a
/// rank's own part would have to be copied by MPI's rules on the host.
class DirectCommunicator final : public StagedCommunicator {
 public:
  using StagedCommunicator::StagedCommunicator;

  std::string transport() const override { return host().transport() + "-direct"; }

 private:
  std::unique_ptr<Communicator> split_device(std::unique_ptr<Communicator> child_host,
                                             std::optional<int> color, int key) override;
  Pending broadcast_device(Elements data, int root) override;
  Pending gather_device(ConstElements mine, Elements all, std::span<const Index> counts, int root) override;
  Pending scatter_device(ConstElements all, std::span<const Index> counts, Elements mine, int root) override;
  Pending all_gather_device(ConstElements mine, Elements all, std::span<const Index> counts) override;
  Pending send_device(ConstElements data, int destination, int tag) override;
  Pending receive_device(Elements data, int source, int tag) override;

  /// This rank's part of `all`, where the host communicator finds and leaves it: it copies nothing then.
  Elements own_part(const ConstElements& all, std::span<const Index> counts) const;
  /// The device is done with what it was given.
  void await_device() const;
};

/// Whether MPI moves this backend's memory by its addresses, on all ranks of host (collective over it). An
/// MPI that cannot may crash on such an address, so it is tried only where the library says on all ranks that
/// it can, and the environment of none has GRIDLOPS_DEVICE_MPI=staged. Tried are the operations that
/// DirectCommunicator uses, with short and long messages, which travel in different ways; all bytes must
/// arrive. An error that MPI returns is an answer, too.
bool mpi_takes_device_memory(Communicator& host, Backend& backend);

}  // namespace gridlops::cuda
