// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/memory_limit.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

namespace gridlops::program {

namespace {

constexpr Index no_limit = std::numeric_limits<Index>::max();

/// The number behind a name in a file of the system; negative if there is none.
Index number_of(const std::string& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) return std::atol(line.c_str() + name.size());
  return -1;
}
/// "NAME: 12 kB", in bytes; negative if there is none.
Index bytes_of(const char* file, const char* name) {
  const Index kib = number_of(file, name);
  return kib < 0 ? kib : 1024 * kib;
}

/// A number in a file of its own; no_limit if there is none, or "max".
Index number_in(const std::string& file) {
  Index number = 0;
  return std::ifstream(file) >> number ? number : no_limit;
}

/// What the control groups of this process, and those around them, leave of their memory. What files have in
/// a cache goes when memory is short.
Index left_by_control_groups() {
  Index left = no_limit;
  const auto look = [&](const std::string& folder, const char* limit_file, const char* use_file,
                        const std::string& total) {
    const Index limit = number_in(folder + limit_file), in_use = number_in(folder + use_file);
    if (limit >= no_limit / 2 || in_use == no_limit) return;
    Index cached = 0;
    for (const char* kind : {"inactive_file ", "active_file "})
      cached += std::max<Index>(number_of(folder + "/memory.stat", total + kind), 0);
    left = std::min(left, std::max<Index>(limit - in_use + cached, 0));
  };
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    std::string path = line.substr(line.rfind(':') + 1);
    const bool unified = line.starts_with("0::"), of_memory = line.find(":memory:") != line.npos;
    while (unified || of_memory) {
      if (unified) {
        look("/sys/fs/cgroup" + path, "/memory.max", "/memory.current", "");
      } else {
        look("/sys/fs/cgroup/memory" + path, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_");
      }
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
  return left;
}

}  // namespace

Index resident_bytes() { return bytes_of("/proc/self/status", "VmRSS:"); }
Index peak_bytes() { return bytes_of("/proc/self/status", "VmHWM:"); }

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
