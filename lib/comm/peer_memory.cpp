// SPDX-License-Identifier: BSD-3-Clause
#include "comm/peer_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

std::vector<SharedPlace> all_places(Communicator& comm, const SharedPlace& mine) {
  std::array<Index, 4> own{mine.descriptor, mine.serial, mine.file_bytes, mine.offset};
  std::vector<Index> all(own.size() * static_cast<std::size_t>(comm.size()));
  comm.all_gather(own, all);
  std::vector<SharedPlace> places;
  for (std::size_t k = 0; k < all.size(); k += own.size())
    places.push_back({all[k], all[k + 1], all[k + 2], all[k + 3]});
  return places;
}

PeerMemory::PeerMemory(Communicator& comm) : processes_(static_cast<std::size_t>(comm.size())) {
  std::array<Index, 1> mine{getpid()};
  comm.all_gather(mine, processes_);
}

PeerMemory::~PeerMemory() {
  for (const auto& [key, mapping] : mappings_) munmap(mapping.memory, mapping.bytes);
}

const std::byte* PeerMemory::at(int rank, const SharedPlace& place) {
  Mapping& mapping = mappings_[{rank, place.descriptor}];
  if (mapping.serial != place.serial) {
    if (mapping.memory != nullptr) munmap(mapping.memory, mapping.bytes);
    mapping = {};
    const std::string path =
        message("/proc/", processes_[static_cast<std::size_t>(rank)], "/fd/", place.descriptor);
    const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    const auto bytes = static_cast<std::size_t>(place.file_bytes);
    void* const memory =
        descriptor < 0 ? MAP_FAILED : mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    const int reason = errno;
    if (descriptor >= 0) close(descriptor);
    require<CommunicationError>(
        memory != MAP_FAILED, "cannot map the memory of rank ", rank, " (", path,
        "): ", std::system_category().message(reason),
        "; ranks in containers of their own cannot share memory: use --transport mpi");
    mapping = {place.serial, memory, bytes};
  }
  return static_cast<const std::byte*>(mapping.memory) + place.offset;
}

}  // namespace gridlops
