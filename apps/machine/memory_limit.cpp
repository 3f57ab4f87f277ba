// SPDX-License-Identifier: BSD-3-Clause
#include "machine/memory_limit.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "machine/control_groups.hpp"

namespace gridlops::program {

namespace {

/// "NAME: 12 kB", in bytes; negative if there is none.
Index bytes_of(const char* file, const char* name) {
  const Index kib = number_behind(name, file);
  return kib < 0 ? kib : 1024 * kib;
}

/// The bytes that this process may still map; no_limit if its address space is not limited.
Index left_in_address_space() {
  struct rlimit limit {};
  const Index taken = bytes_of("/proc/self/status", "VmSize:");
  if (taken < 0 || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  constexpr auto most = static_cast<rlim_t>(no_limit);
  return std::max<Index>(static_cast<Index>(std::min(limit.rlim_cur, most)) - taken, 0);
}

}  // namespace

Index resident_bytes() { return bytes_of("/proc/self/status", "VmRSS:"); }
Index peak_bytes() { return bytes_of("/proc/self/status", "VmHWM:"); }

void return_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
}

Index address_space_of_disk_threads(Communicator& comm) {
  constexpr Index threads = 6;  // that read ahead, or tell of slow disks
  std::array<Index, 1> most{0};
  pthread_attr_t attributes;
  if (left_in_address_space() != no_limit && pthread_attr_init(&attributes) == 0) {
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);  // each thread would take 64 MiB for one of its own
#endif
    std::size_t stack = 0;
    pthread_attr_getstacksize(&attributes, &stack);
    pthread_attr_destroy(&attributes);
    most[0] = threads * static_cast<Index>(stack);
  }
  comm.all_reduce(most, ReduceOp::max);
  return most[0];
}

Index available_bytes_per_rank(Communicator& comm) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::array<Index, 1> mine{static_cast<Index>(std::hash<std::string>()(host.data()) >> 1)};
  std::vector<Index> hosts(static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine, hosts);
  const Index ranks = std::count(hosts.begin(), hosts.end(), mine[0]);
  const Index of_machine = bytes_of("/proc/meminfo", "MemAvailable:");
  const Index left = std::min(of_machine < 0 ? no_limit : of_machine, left_by_control_groups());
  const Index of_rank = std::min(left == no_limit ? no_limit : left / ranks, left_in_address_space());
  std::array<Index, 1> least{of_rank == no_limit ? -no_limit
                                                 : -(of_rank + std::max<Index>(resident_bytes(), 0))};
  comm.all_reduce(least, ReduceOp::max);
  return -least[0];
}

}  // namespace gridlops::program
