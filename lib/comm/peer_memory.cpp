// SPDX-License-Identifier: BSD-3-Clause
#include "comm/peer_memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "local/shared_file.hpp"

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

PeerMemory::PeerMemory(Communicator& comm)
    : processes_(static_cast<std::size_t>(comm.size())), mappings_(processes_.size()) {
  std::array<Index, 1> mine{getpid()};
  comm.all_gather(mine, processes_);
}

PeerMemory::~PeerMemory() {
  for (const std::vector<Mapping>& of_rank : mappings_)
    for (const Mapping& mapping : of_rank) munmap(const_cast<void*>(mapping.memory), mapping.bytes);
}

// A file only grows, to twice its size and more, so that there are few mappings of it.
const std::byte* PeerMemory::at(int rank, const SharedPlace& place) {
  std::vector<Mapping>& of_rank = mappings_[static_cast<std::size_t>(rank)];
  const auto fits = [&](const Mapping& mapping) {
    return mapping.serial == place.serial && place.file_bytes <= static_cast<Index>(mapping.bytes);
  };
  auto found = std::find_if(of_rank.begin(), of_rank.end(), fits);
  if (found == of_rank.end()) {
    const void* const memory = map_file_of(processes_[static_cast<std::size_t>(rank)], place.descriptor,
                                           place.serial, place.file_bytes);
    found = of_rank.insert(found, {place.serial, memory, static_cast<std::size_t>(place.file_bytes)});
  }
  return static_cast<const std::byte*>(found->memory) + place.offset;
}

}  // namespace gridlops
