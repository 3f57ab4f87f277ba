// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>
#include <unistd.h>

#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <optional>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "local/host_backend.hpp"
#include "local/shared_file.hpp"

namespace gridlops {

namespace {

#ifdef __linux__
constexpr bool can_share = true;
#else
constexpr bool can_share = false;
#endif

/// All memory of this process that others can map: one file, and so one descriptor, however many blocks there
/// are. Blocks are ranges of whole pages; the first range that is large enough is taken.
class SharedMemory {
 public:
  void* allocate(Index bytes) {
    const Index page = SharedFile::first_free();
    if (bytes > std::numeric_limits<Index>::max() - page) return nullptr;
    const Index rounded = (bytes + page - 1) / page * page;
    const std::scoped_lock lock(mutex_);
    if (!file_) file_.emplace();
    auto range = free_.begin();
    while (std::next(range) != free_.end() && range->second < rounded) ++range;
    const auto [offset, room] = *range;
    void* const memory = file_->map(offset, rounded);
    if (memory == nullptr) return nullptr;
    free_.erase(range);
    if (room > rounded) free_[offset + rounded] = room - rounded;
    blocks_[static_cast<std::byte*>(memory)] = {offset, rounded};
    return memory;
  }

  /// False if this is no block of this memory.
  bool release(void* memory) noexcept {
    const std::scoped_lock lock(mutex_);
    const auto found = blocks_.find(static_cast<std::byte*>(memory));
    if (found == blocks_.end()) return false;
    const auto [offset, bytes] = found->second;
    blocks_.erase(found);
    munmap(memory, static_cast<std::size_t>(bytes));
    file_->empty(offset, bytes);
    add_free(offset, bytes);
    return true;
  }

  SharedPlace place_of(const void* memory) const {
    const auto* const address = static_cast<const std::byte*>(memory);
    const std::scoped_lock lock(mutex_);
    auto found = blocks_.upper_bound(address);
    if (found == blocks_.begin()) return {};
    --found;
    const auto [offset, bytes] = found->second;
    const Index distance = address - found->first;
    return distance < bytes
               ? SharedPlace{file_->descriptor(), file_->serial(), file_->bytes(), offset + distance}
               : SharedPlace{};
  }

 private:
  struct Range {
    Index offset, bytes;
  };

  /// Neighbours become one range.
  void add_free(Index offset, Index bytes) {
    const auto next = free_.lower_bound(offset);
    if (next->first == offset + bytes) bytes += next->second;
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
      }
    }
    if (next->first < offset + bytes) free_.erase(next);
    free_[offset] = bytes;
  }

  mutable std::mutex mutex_;
  std::optional<SharedFile> file_;  // with the first block
  std::map<const std::byte*, Range> blocks_;
  // Bytes by offset. The last range has no end: the file grows into it.
  std::map<Index, Index> free_{{SharedFile::first_free(), std::numeric_limits<Index>::max() / 2}};
};

/// Never destroyed: memory may be given back late.
SharedMemory& shared_memory() {
  static SharedMemory& memory = *new SharedMemory;
  return memory;
}

class SharedHostBackend final : public HostBackend {
 public:
  std::string name() const override { return "host, shared"; }

  /// Others may have it mapped.
  void discard(void*, Index) override {}

  bool shares_memory() const override { return true; }
  SharedPlace shared_place(const void* memory) const override { return shared_memory().place_of(memory); }

 private:
  void* do_allocate(Index bytes) override {
    return bytes < sysconf(_SC_PAGESIZE) ? HostBackend::do_allocate(bytes) : shared_memory().allocate(bytes);
  }
  void do_release(void* memory) noexcept override {
    if (!shared_memory().release(memory)) HostBackend::do_release(memory);
  }
};

}  // namespace

std::shared_ptr<Backend> make_shared_host_backend() {
  require<UsageError>(can_share, "memory that other ranks can read needs Linux; use the transport mpi");
  return std::make_shared<SharedHostBackend>();
}

}  // namespace gridlops
