// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "gridlops/types.hpp"

namespace gridlops {

/// Closes what it owns. Move-only.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor();

  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

/// A regular file to read from. Throws InputError, with the path, the position and the system's reason.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  Index size() const { return size_; }
  void read(void* to, Index bytes, Index offset) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  Index size_ = 0;
};

/// A file to write to. Throws OutputError, with the path, the position and the system's reason.
class OutputFile {
 public:
  /// Nothing if there is something of that name, be it a dangling link.
  static std::optional<OutputFile> create(const std::string& path);
  /// One that exists, and is no link.
  static OutputFile open(const std::string& path);

  void resize(Index bytes);
  void write(const void* from, Index bytes, Index offset);
  /// The data are on the disk and the file is closed. To be called last; without it errors may go unnoticed.
  void finish();

 private:
  OutputFile(const std::string& path, FileDescriptor descriptor);

  std::string path_;
  FileDescriptor descriptor_;
};

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
