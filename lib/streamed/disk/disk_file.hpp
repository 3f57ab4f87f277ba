// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/files/file.hpp"
#include "io/files/temporary_file.hpp"
#include "streamed/disk/disk_wait.hpp"

namespace gridlops {

/// A file with tiles of A, which one rank writes and then reads, or with A as a user has it.
class DiskFile {
 public:
  /// Where reads begin in the file and in memory, and their length, are multiples of this.
  static constexpr Index block = 4096;

  /// A file without a name in a directory, which is gone when the process ends, however it ends. Empty: the
  /// directory is $TMPDIR, or else /var/tmp. Takes room for this many bytes on the disk. Throws OutputError
  /// on this rank alone, also if the directory is in memory.
  static DiskFile nameless(const std::string& directory, Index bytes);
  /// A file that gets a name by keep_as(), beside this path. Throws OutputError on this rank alone.
  static DiskFile for_good(const std::string& path, Index bytes);
  /// The file of this name; nothing unless it has this many bytes.
  static std::optional<DiskFile> of_name(const std::string& path, Index bytes);
  /// A file of the user's, which is only read. Throws InputError.
  static DiskFile to_read(const std::string& path);

  /// Where it is, for messages.
  const std::string& place() const { return place_; }
  /// Takes room on the disk up to this many bytes, where there is room for fewer. Throws OutputError on this
  /// rank alone.
  void take_room(Index bytes);
  /// Returns the wait for this many bytes to be written; its caller keeps it meanwhile.
  DiskWait writing(Index bytes) const;
  /// Throws OutputError on this rank alone.
  void write(const void* from, Index bytes, Index offset);
  /// Flushes the written bytes to the disk. Throws OutputError.
  void finish();
  /// Gives the file of for_good() this name, in place of another file. It is finished.
  void keep_as(const std::string& path);
  /// Reads past the system's cache, if the file system can. Any thread may call it. Throws InputError, unless
  /// the file ends after the first `needed` bytes.
  void read(void* to, Index bytes, Index offset, Index needed) const;
  void read(void* to, Index bytes, Index offset) const { read(to, bytes, offset, bytes); }

 private:
  DiskFile(std::string place, FileDescriptor descriptor);

  std::string place_;
  Index room_ = 0;
  FileDescriptor file_, for_reads_;
  std::unique_ptr<TemporaryFile> unnamed_;
};

}  // namespace gridlops
