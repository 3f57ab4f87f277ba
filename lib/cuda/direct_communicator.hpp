// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "cuda/staged_communicator.hpp"

namespace gridlops::cuda {

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

}  // namespace gridlops::cuda
