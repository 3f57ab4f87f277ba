// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <filesystem>
#include <string>

#include "io/files/file.hpp"

namespace gridlops {

enum class Lock { taken, anothers, impossible };

/// Locks a byte beyond all data, because on some file systems nobody else may write to a locked range. The
/// kernel drops the lock when the descriptor is closed, or when its process dies.
Lock lock(int descriptor);

/// Whether the name still leads to this open file: another run may have removed that file meanwhile.
bool is_regular_file_at(const std::filesystem::path& path, int descriptor);

std::string host_name();

/// Holds a lock that other processes can see, during its lifetime: a file, locked by the kernel, with a line
/// that says who holds it. The kernel releases the lock when the process dies, so a file left by a killed run
/// blocks nobody. On network file systems the server does that, once it misses the host. On a file system
/// without locks, everybody gets one.
class LockFile {
 public:
  /// `what_for`, in the error: "save checkpoints there". Throws OutputError if another process has the lock,
  /// and keeps it for as long as `patience`, with that process's line; or if the file is no lock.
  LockFile(const std::string& path, const std::string& what_for, std::chrono::seconds patience = {});
  /// Removes the file.
  ~LockFile();
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

 private:
  std::string path_;
  FileDescriptor descriptor_{-1};
};

}  // namespace gridlops
