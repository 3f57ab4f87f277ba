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
  Index serial = 0;  ///< of the file, never given again by this process
  Index file_bytes = 0;
  Index offset = 0;

  /// False for memory that other processes cannot map.
  bool is_shared() const { return descriptor >= 0; }
};

/// A file without a name that other processes of this machine can map. It is gone with the last process that
/// has it mapped, however that ends. It begins with its serial number, by which other processes recognise it.
class SharedFile {
 public:
  /// Throws Error where the system gives no file, and says so where too many are open.
  SharedFile();
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  /// Of the byte at this offset.
  SharedAddress address(Index offset) const { return {descriptor_, serial_, bytes_, offset}; }

  /// Bytes that the serial number takes: the first that are free for use.
  static Index first_free();
  /// Maps a range of whole pages, for which the file grows to a power of two; pages that nothing was written
  /// to take no memory. Null if there is not enough memory.
  void* map(Index offset, Index bytes);
  /// Gives the memory of a range of whole pages back to the system.
  void empty(Index offset, Index bytes) noexcept;

 private:
  int descriptor_ = -1;
  Index serial_ = 0;  // a random number
  Index bytes_ = 0;   // how far the file reaches
};

/// All memory of this process that others can map: one file, and so one descriptor, however many blocks there
/// are. Blocks are ranges of whole pages; a new block takes the first free range that is large enough.
class SharedMemory {
 public:
  /// Null if there is not enough memory.
  void* allocate(Index bytes);
  /// False if this is no block of this memory.
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

/// Where other processes find this memory of a backend; not shared where they cannot.
SharedAddress shared_address(const Backend& backend, const void* memory);

/// Maps the file of a process that an address of that process lies in, to be read. Throws CommunicationError
/// with the reason where that is impossible, or where that process has another file open there.
const void* map_file_of(Index process, const SharedAddress& address);

}  // namespace gridlops
