// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "io/file.hpp"

namespace gridlops {

/// A new file beside the one whose name it is to take. Removed with this object unless it has got that name.
///
/// Its name is that one with ".tmp.HOST-PID-N", HOST standing for the host. It is locked until this object
/// goes, or the process dies: the next TemporaryFile for the same name on the same host removes what is not
/// locked. What died on another host stays, since locks of some shared file systems are not seen by other
/// hosts.
class TemporaryFile {
 public:
  /// Throws OutputError if `path` is something that a file must not replace.
  explicit TemporaryFile(const std::string& path);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& name() const { return name_; }

  /// The file has `start` and room for `bytes` in all, and is closed: others may open it.
  void prepare(const std::string& start, Index bytes);
  /// The file has these pieces, up to an empty one, and is closed.
  void fill(const std::function<std::string()>& next_piece);

  /// The file's data must be on the disk.
  void take_name();

 private:
  bool guard();

  std::filesystem::path target_;
  std::string name_;
  std::optional<OutputFile> file_;
  FileDescriptor lock_{-1};
  bool renamed_ = false;
};

/// The names in a directory are on the disk, where that can be done; where not, a file may have its old name
/// again after a power cut.
void synchronise_directory(const std::filesystem::path& directory);

}  // namespace gridlops
