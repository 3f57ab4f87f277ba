// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// Owns a file descriptor, and closes it. Move-only.
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

/// A regular file that one rank reads. Throws InputError with the path, the position and the system's reason.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  Index size() const { return size_; }
  int descriptor() const { return descriptor_.number(); }
  void read(void* to, Index bytes, Index offset) const;
  /// Reads the whole file. Throws InputError if that is more than this many bytes.
  std::string text(Index most_bytes) const;

 private:
  std::string path_;
  FileDescriptor descriptor_;
  Index size_ = 0;
};

/// Who may read and write a new file.
enum class Access {
  by_umask,  ///< everyone whom the process's umask allows
  owner      ///< only the user who runs the job
};

/// A file that one rank writes. Throws OutputError with its name, the position and the system's reason. The
/// name is the one that the user gave; the path may be that of a temporary file.
/// Reasons: docs/decisions/0030-files.md.
class OutputFile {
 public:
  /// Makes a new file. Returns nothing if the path is taken, even by a dangling link.
  static std::optional<OutputFile> create(const std::string& path, const std::string& name, Access access);
  /// Opens an existing file that is not a link.
  static OutputFile open(const std::string& path, const std::string& name);

  void resize(Index bytes);
  void write(const void* from, Index bytes, Index offset);
  /// Becomes a copy of the other file.
  void copy(const InputFile& from);
  /// Writes the data to the disk and closes the file. Without this last call errors may go unnoticed.
  void finish();

 private:
  OutputFile(const std::string& name, FileDescriptor descriptor);

  std::string name_;
  FileDescriptor descriptor_;
};

/// Writes the names in a directory to the disk, on systems that can. On others a file may have its old name
/// again after a power cut. Throws OutputError if the disk fails.
void synchronise_directory(const std::filesystem::path& directory);

}  // namespace gridlops
