// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "io/file.hpp"

namespace gridlops {

/// A file without a name in a directory, for this process alone. It is gone when the process ends, however it
/// ends, and no other can collide with it.
class ScratchFile {
 public:
  /// Where reads begin in the file and in memory, and their length, are multiples of this.
  static constexpr Index block = 4096;

  /// Takes room for so many bytes on the disk. Empty: the directory is $TMPDIR, or else /var/tmp. Throws
  /// OutputError on this rank alone, also if the directory is in memory.
  ScratchFile(const std::string& directory, Index bytes);

  const std::string& directory() const { return directory_; }
  /// Throws OutputError on this rank alone.
  void write(const void* from, Index bytes, Index offset);
  /// Call once after the last write: the data go to the disk. Throws OutputError.
  void finish();
  /// Reads past the system's cache, if the file system can. Any thread may call it. Throws InputError.
  void read(void* to, Index bytes, Index offset) const;

 private:
  std::string directory_;
  FileDescriptor written_{-1}, read_{-1};
};

}  // namespace gridlops
