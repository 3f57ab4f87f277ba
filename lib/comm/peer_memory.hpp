// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

  /// What this rank reads at the place that `rank` named. The file is mapped when first asked for, again when
  /// it has grown, and kept as long as this lives. Throws CommunicationError where that is impossible.
  const std::byte* at(int rank, const SharedPlace& place);

 private:
  struct Mapping {
    Index serial = 0;
    const void* memory = nullptr;
    std::size_t bytes = 0;
  };

  std::vector<Index> processes_;
  std::vector<std::vector<Mapping>> mappings_;  // by rank
};

}  // namespace gridlops
