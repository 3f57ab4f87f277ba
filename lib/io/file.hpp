// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <functional>
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

/// Writes the names in a directory to the disk, on systems that can. On others a file may have its old name
/// again after a power cut. Throws OutputError if the disk fails.
void synchronise_directory(const std::filesystem::path& directory);

/// write_text_file() with this access.
void write_text_file(const std::string& path, Access access, const std::function<std::string()>& next_piece);

}  // namespace gridlops
