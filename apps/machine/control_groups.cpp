// SPDX-License-Identifier: BSD-3-Clause
#include "machine/control_groups.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace gridlops::program {

namespace {

/// A number in a file of its own; no_limit if there is none, or "max".
Index number_in(const std::string& file) {
  Index number = 0;
  return std::ifstream(file) >> number ? number : no_limit;
}

/// The memory that the group of this folder leaves. The names are those of its files, and what comes before
/// names in its statistics.
Index left_by_group(const std::string& folder, const char* limit_file, const char* use_file,
                    const std::string& total) {
  const Index limit = number_in(folder + limit_file), in_use = number_in(folder + use_file);
  if (limit >= no_limit / 2 || in_use == no_limit) return no_limit;  // version 1 says nearly 2⁶³ for none
  Index of_files = 0;
  for (const char* kind : {"inactive_file ", "active_file "})
    of_files += std::max<Index>(number_behind(total + kind, folder + "/memory.stat"), 0);
  return std::max<Index>(limit - in_use + of_files, 0);
}

}  // namespace

Index number_behind(const std::string& name, const std::string& file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) return std::atol(line.c_str() + name.size());
  return -1;
}

Index left_by_control_groups(const std::string& root) {
  const std::string folder = root + "/sys/fs/cgroup";
  Index left = no_limit;
  // Lines are NUMBER:CONTROLLERS:PATH, for version 2 without controllers. A path may have colons.
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == controllers.npos) continue;
    for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
      left = std::min(left, unified ? left_by_group(folder + path, "/memory.max", "/memory.current", "")
                                    : left_by_group(folder + "/memory" + path, "/memory.limit_in_bytes",
                                                    "/memory.usage_in_bytes", "total_"));
      if (path.find('/') == path.npos) break;
    }
  }
  return left;
}

}  // namespace gridlops::program
