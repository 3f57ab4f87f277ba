// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/stat.h>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "gridlops/base/types.hpp"
#include "io/files/file.hpp"

namespace gridlops {

/// Between a target's name and the rest of a TemporaryFile's.
inline constexpr const char* temporary_mark = ".tmp.";

/// A new file beside the target, whose name it will take. The destructor removes it unless it has taken that
/// name. If the target exists, the new file gets its mode together with its name, and its owner and group if
/// this user may set them. Until then only this user may access it.
///
/// Its name is the target's with ".tmp.HOST-PID-N" at the end, where HOST is a hash. It is locked until this
/// object is destroyed, or its process dies. The next TemporaryFile for the same target on the same host
/// removes files that are not locked. Those of dead processes on other hosts stay, because some shared file
/// systems show no locks to other hosts.
class TemporaryFile {
 public:
  /// Makes the file. Throws OutputError if the target exists and is not a regular file, or may not be
  /// written.
  explicit TemporaryFile(const std::string& path, Access access = Access::by_umask);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& name() const { return name_; }

  /// Writes `start`, extends the file to `bytes` in total, and closes it, so that other ranks may open it.
  void prepare(const std::string& start, Index bytes);
  /// Becomes a copy of another file, which shares its blocks where the file system can. prepare() has been
  /// called.
  void copy(const std::string& path);
  /// Writes the pieces that next_piece() returns, up to an empty one, and closes the file.
  void fill(const std::function<std::string()>& next_piece);

  /// Takes the target's name. The file's data must be on the disk.
  void take_name();
  /// Takes another name in the target's folder.
  void take_name(const std::string& path);

 private:
  bool guard();

  std::string given_;
  std::filesystem::path target_;
  std::string name_;
  std::optional<OutputFile> file_;
  FileDescriptor lock_{-1};
  std::optional<struct stat> replaced_;
  bool renamed_ = false;
};

/// write_text_file() with this access.
void write_text_file(const std::string& path, Access access, const std::function<std::string()>& next_piece);

}  // namespace gridlops
