// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/grids.hpp"

namespace gridlops::testing {

/// A directory that is not in memory.
inline const std::string disk = [] {
  for (const char* const directory : {"/var/tmp", ".", "/tmp"}) {
    struct statfs system {};
    const bool is_on_disk = statfs(directory, &system) == 0 && system.f_type != TMPFS_MAGIC;
    if (is_on_disk && access(directory, W_OK) == 0) return std::filesystem::canonical(directory).string();
  }
  return std::string("/var/tmp");
}();

inline bool is_on_host(const GridPtr& grid) { return grid->backend()->memory_space() == MemorySpace::host; }
inline bool is_last_rank(const ProcessGrid& grid) {
  return grid.my_row() == grid.rows() - 1 && grid.my_col() == grid.cols() - 1;
}

/// The descriptors of this process's files without a name in a directory.
inline std::vector<int> nameless_files(const std::string& directory) {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    const int descriptor = std::stoi(entry.path().filename().string());
    const bool is_written = (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDWR;
    if (target.starts_with(directory) && target.ends_with(" (deleted)") && is_written)
      found.push_back(descriptor);
  }
  return found;
}
/// The bytes of the only one; 0 if there is none.
inline Index nameless_bytes(const std::string& directory) {
  const std::vector<int> files = nameless_files(directory);
  return files.empty() ? 0 : lseek(files.front(), 0, SEEK_END);
}

/// Gives this rank's only nameless file another byte, this far from its end, in a part that is not read
/// before it is used; again, and it is what it was.
inline void flip_byte(const std::string& directory, Index from_end) {
  const std::vector<int> files = nameless_files(directory);
  REQUIRE(files.size() == 1);
  const off_t offset = lseek(files[0], 0, SEEK_END) - from_end;
  char byte = 0;
  REQUIRE(pread(files[0], &byte, 1, offset) == 1);
  byte = static_cast<char>(byte ^ 1);
  REQUIRE(pwrite(files[0], &byte, 1, offset) == 1);
  fdatasync(files[0]);
  posix_fadvise(files[0], 0, 0, POSIX_FADV_DONTNEED);
}

}  // namespace gridlops::testing
