// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace emulation {

/// The operations before some point: of each stream, how many of its operations (a vector clock).
class Moment {
 public:
  void advance(int stream, long tick) {
    const auto place = static_cast<std::size_t>(stream);
    if (place >= ticks_.size()) ticks_.resize(place + 1);
    ticks_[place] = std::max(ticks_[place], tick);
  }
  void join(const Moment& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t k = 0; k < other.ticks_.size(); ++k) ticks_[k] = std::max(ticks_[k], other.ticks_[k]);
  }
  bool includes(int stream, long tick) const {
    const auto place = static_cast<std::size_t>(stream);
    return place < ticks_.size() && ticks_[place] >= tick;
  }

 private:
  std::vector<long> ticks_;  // by the numbers of streams
};

using Label = std::shared_ptr<const std::string>;

/// `count` runs of `width` bytes, one every `pitch` bytes.
struct Region {
  const void* begin = nullptr;
  std::size_t width = 0, pitch = 0, count = 1;
  bool written = false;
  std::size_t alignment = 1;  ///< of the elements

  std::size_t extent() const { return count == 0 || width == 0 ? 0 : (count - 1) * pitch + width; }
};
inline Region reads(const void* begin, std::size_t bytes) { return {begin, bytes, bytes, 1, false, 1}; }
inline Region writes(const void* begin, std::size_t bytes) { return {begin, bytes, bytes, 1, true, 1}; }

struct Access {
  std::size_t offset, width, pitch, count;
  bool written;
  int stream;
  long tick;
  Label label;
};

struct Allocation {
  char* begin = nullptr;
  std::size_t size = 0;
  int number = 0;
  bool on_device = true;
  int device = 0;
  bool freed = false;
  std::vector<Access> accesses;  // that later ones may have to be ordered after

  std::string name() const;
};

/// Device memory is mapped twice. Nobody may touch it where the program's pointers point; the emulation uses
/// the other mapping. Addresses are never used again, so that freed memory is known by its address. All of it
/// is one file in memory that other processes can open (Arena::origin()).
class Memory {
 public:
  Memory();

  /// Null if there is not enough left, of the address space or of what the environment says that the current
  /// device, or the host for pinned memory, has. The memory is filled with NaN of every floating-point type.
  void* allocate(std::size_t bytes, bool on_device);
  /// From now on the bytes may be given to other allocations, although work in progress still uses them.
  void make_room(const Allocation& allocation) { bytes_in_use(allocation) -= allocation.size; }
  /// Unmaps the memory; the record of it stays.
  void free(Allocation& allocation);

  Allocation* find(const void* address);
  bool is_device(const void* address) const {
    const auto* p = static_cast<const char*>(address);
    return p >= public_ && p < public_ + size_;
  }
  /// The address at which the emulation can access what the program knows by this address.
  template <class T>
  T* alias(T* address) const {
    if (!is_device(address)) return address;
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(address) -
                                reinterpret_cast<std::uintptr_t>(public_) +
                                reinterpret_cast<std::uintptr_t>(alias_));
  }

  /// How another process finds a device address of this one.
  std::size_t offset_of(const void* address) const {
    return static_cast<std::size_t>(static_cast<const char*>(address) - public_);
  }
  int file() const { return file_; }

  /// Checks that the region lies in live memory and that all accesses that conflict with it are in `known`;
  /// records the access. No later operation can conflict with what is in `settled`.
  void touch(const Region& region, const Moment& known, int stream, long tick, const Moment& settled,
             const Label& label);

  /// Checks that the region lies in live memory and that the host has waited for all that conflicts with it;
  /// `user` acts for the host.
  void check_host_use(const Region& region, const Moment& host, const char* user);

  const std::map<char*, Allocation>& allocations() const { return allocations_; }
  static void poison(void* memory, std::size_t bytes);

 private:
  std::size_t& bytes_in_use(const Allocation& allocation) {
    return allocation.on_device ? on_devices_[allocation.device] : pinned_;
  }

  static constexpr std::size_t size_ = std::size_t{64} << 30;
  int file_ = -1;
  char* public_ = nullptr;
  char* alias_ = nullptr;
  std::size_t used_ = 0;                   // of the address space
  std::map<int, std::size_t> on_devices_;  // bytes that each has in use
  std::size_t pinned_ = 0;
  int numbers_ = 0;
  std::map<char*, Allocation> allocations_;
};

/// Another process' device memory, to be read.
const char* peer_memory(int process, int file, std::size_t size_to_map = std::size_t{64} << 30);

}  // namespace emulation
