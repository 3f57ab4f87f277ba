// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "gridlops/types.hpp"

namespace gridlops {

/// A file without a name that other processes of this machine can map: it is gone with the last process that
/// has it mapped, however that ends. It begins with its serial number, by which others know that it is the
/// one they were told of.
class SharedFile {
 public:
  /// Throws Error where the system gives no file, and says so where too many are open.
  SharedFile();
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// A random number.
  Index serial() const { return serial_; }

  /// Bytes that the serial number takes: the first that are free for use.
  static Index first_free();
  /// Maps a range of whole pages, for which the file grows, to a power of two: what nothing was written to
  /// takes no memory. Null if there is not enough memory.
  void* map(Index offset, Index bytes);
  /// Gives the memory of a range of whole pages back to the system.
  void empty(Index offset, Index bytes) noexcept;
  /// How far the file reaches.
  Index bytes() const { return bytes_; }

 private:
  int descriptor_ = -1;
  Index serial_ = 0, bytes_ = 0;
};

/// Maps the first bytes of what a process has open as `descriptor`, to be read. Throws CommunicationError
/// with the reason where that is impossible, or not the file of this serial number.
const void* map_file_of(Index process, Index descriptor, Index serial, Index bytes);

}  // namespace gridlops
