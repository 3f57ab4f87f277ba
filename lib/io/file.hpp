// SPDX-License-Identifier: BSD-3-Clause
#pragma once

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

}  // namespace gridlops
