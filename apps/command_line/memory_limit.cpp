// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/memory_limit.hpp"

#include <unistd.h>

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "command_line/control_groups.hpp"

namespace gridlops::program {

namespace {

/// "NAME: 12 kB", in bytes; negative if there is none.
Index bytes_of(const char* file, const char* name) {
  const Index kib = number_behind(name, file);
  return kib < 0 ? kib : 1024 * kib;
}

}  // namespace

Index resident_bytes() { return bytes_of("/proc/self/status", "VmRSS:"); }
Index peak_bytes() { return bytes_of("/proc/self/status", "VmHWM:"); }

void return_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
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
  std::array<Index, 1> least{left == no_limit ? -no_limit
                                              : -(left / ranks + std::max<Index>(resident_bytes(), 0))};
  comm.all_reduce(least, ReduceOp::max);
  return -least[0];
}

}  // namespace gridlops::program
