// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "cuda/communicators/device_communicator.hpp"
#include "cuda/communicators/staged_transfer.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::cuda {

/// A communicator that moves device operands through host memory, by the host communicator.
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
  /// Makes one operation on whole operands: start(in, out) begins it on host memory. `out` may be empty.
  template <class Start>
  Pending at_once(const ConstElements& in, const Elements& out, const Start& start);
};

/// A communicator that moves device operands by an MPI that accepts device addresses, as found by
/// mpi_takes_device_memory(). MPI does not know streams, so the host first waits for all device work.
/// Reductions are staged even so: the trial showed that MPI moves device memory, not that it adds there.
/// all_to_all is staged too, because otherwise the host would have to copy a rank's own part.
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

  /// This rank's part within `all`. With it, the host communicator copies nothing.
  Elements own_part(const ConstElements& all, std::span<const Index> counts) const;
  /// Waits until the device has done all the work that it was given.
  void await_device() const;
};

/// Whether MPI moves this backend's memory by its addresses, on all ranks of host (collective over host). An
/// MPI that cannot may crash, so this tries only if the library says on all ranks that it can, and no rank's
/// environment has GRIDLOPS_DEVICE_MPI=staged. The trial makes the operations that DirectCommunicator uses,
/// with short and with long messages, because MPI sends these in different ways. All bytes must arrive; an
/// MPI error means no.
bool mpi_takes_device_memory(Communicator& host, Backend& backend);

}  // namespace gridlops::cuda
