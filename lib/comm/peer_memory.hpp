// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <vector>

#include "gridlops/backend.hpp"
#include "gridlops/communicator.hpp"

namespace gridlops {

/// Where each rank has what it wants to show, by rank (collective over comm).
std::vector<SharedPlace> all_places(Communicator& comm, const SharedPlace& mine);

/// The memory of the other ranks of a machine, as far as it is shared, at addresses of this process.
class PeerMemory {
 public:
  /// Collective over comm.
  explicit PeerMemory(Communicator& comm);
  ~PeerMemory();
  PeerMemory(const PeerMemory&) = delete;
  PeerMemory& operator=(const PeerMemory&) = delete;

  /// What this rank reads at the place that `rank` named: mapped when first asked for, and kept until that
  /// rank uses the descriptor for something else. Throws CommunicationError where the system does not allow
  /// it.
  const std::byte* at(int rank, const SharedPlace& place);

 private:
  struct Mapping {
    Index serial = 0;
    void* memory = nullptr;
    std::size_t bytes = 0;
  };

  std::vector<Index> processes_;
  std::map<std::pair<int, Index>, Mapping> mappings_;  // by rank and descriptor
};

}  // namespace gridlops
