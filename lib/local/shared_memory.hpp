// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "gridlops/base/types.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

/// Where other processes of this machine find memory of this one: `offset` bytes into a file that this
/// process has open.
struct SharedAddress {
  Index descriptor = -1;
  Index serial = 0;  ///< of the file; this process never uses it again
  Index file_bytes = 0;
  Index offset = 0;

  /// False for memory that other processes cannot map.
  bool is_shared() const { return descriptor >= 0; }
};

/// A file without a name that other processes of this machine can map. It disappears with the last process
/// that has it mapped, however that process ends. It begins with its serial number, by which other processes
/// recognise it.
class SharedFile {
 public:
  /// Throws Error if the system gives no file; the message says so if too many are open.
  SharedFile();
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// The address of the byte at this offset.
  SharedAddress address(Index offset) const { return {descriptor_, serial_, bytes_, offset}; }

  /// Bytes that the serial number occupies; those after it are free for use.
  static Index first_free();
  /// Maps a range of whole pages, growing the file to a power of two. Pages that nobody has written take no
  /// memory. Returns null if there is not enough memory.
  void* map(Index offset, Index bytes);
  /// Returns the memory of a range of whole pages to the system.
  void empty(Index offset, Index bytes) noexcept;

 private:
  int descriptor_ = -1;
  Index serial_ = 0;  // a random number
  Index bytes_ = 0;   // the file's length
};

/// All memory of this process that others can map: one file, and so one descriptor, for any number of blocks.
/// Blocks are ranges of whole pages; a new block takes the first free range that is large enough.
/// Reasons: docs/decisions/0007-memory-of-peers.md.
class SharedMemory {
 public:
  /// Returns null if there is not enough memory.
  void* allocate(Index bytes);
  /// Returns false if this is not a block of this memory.
  bool release(void* memory) noexcept;
  /// Not shared if the address lies in no block of this memory.
  SharedAddress address_of(const void* memory) const;

 private:
  struct Range {
    Index offset, bytes;
  };
  void add_free(Index offset, Index bytes);

  mutable std::mutex mutex_;
  std::optional<SharedFile> file_;  // made with the first block
  std::map<const std::byte*, Range> blocks_;
  // Bytes by offset. The last range has no end: the file grows into it.
  std::map<Index, Index> free_{{SharedFile::first_free(), std::numeric_limits<Index>::max() / 2}};
};

/// Where other processes find this memory of a backend; not shared if they cannot.
SharedAddress shared_address(const Backend& backend, const void* memory);

/// Maps the file in which an address of another process lies, for reading. Throws CommunicationError with the
/// reason if that is impossible, or if that process has another file open there.
const void* map_file_of(Index process, const SharedAddress& address);

}  // namespace gridlops
