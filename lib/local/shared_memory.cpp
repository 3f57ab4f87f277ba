// SPDX-License-Identifier: BSD-3-Clause
#include "local/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <system_error>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "local/host_backend.hpp"

namespace gridlops {

namespace {

#ifdef __linux__
int anonymous_file() { return memfd_create("gridlops", MFD_CLOEXEC); }
void punch_hole(int descriptor, Index offset, Index bytes) {
  static_cast<void>(fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes));
}
#else
int anonymous_file() {
  errno = ENOSYS;
  return -1;
}
void punch_hole(int, Index, Index) {}
#endif

constexpr const char* in_containers =
    "; ranks in containers of their own cannot share memory: use the transport mpi";

constexpr Index most_bytes = Index{1} << 62;

/// The smallest power of two that is at least `bytes`.
Index rounded_up(Index bytes) { return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(bytes))); }

std::string text_of(int reason) {
  std::string text = std::system_category().message(reason);
  if (reason == EMFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    text += message(": this process has as many files open as its limit of ", limit.rlim_cur,
                    " allows; raise it (ulimit -n), or use the transport mpi");
  } else if (reason == ENFILE) {
    text += "; the whole system has (/proc/sys/fs/file-max)";
  }
  return text;
}

/// A file of another process, open for reading while this object lives.
class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

SharedFile::SharedFile() : descriptor_(anonymous_file()) {
  if (descriptor_ < 0)
    throw Error(ExitStatus::internal,
                message("there is no memory that other ranks can read: ", text_of(errno)), KnownTo::one_rank);
  std::random_device random;
  serial_ = static_cast<Index>((std::uint64_t{random()} << 32 | random()) >> 1) | 1;
  bytes_ = first_free();
  if (ftruncate(descriptor_, bytes_) == 0 &&
      pwrite(descriptor_, &serial_, sizeof serial_, 0) == sizeof serial_)
    return;
  const int reason = errno;
  close(descriptor_);
  throw OutOfMemory(message("there is no memory that other ranks can read: ", text_of(reason)));
}

SharedFile::~SharedFile() { close(descriptor_); }

Index SharedFile::first_free() { return sysconf(_SC_PAGESIZE); }

void* SharedFile::map(Index offset, Index bytes) {
  if (bytes > most_bytes - offset) return nullptr;
  if (offset + bytes > bytes_) {
    const Index longer = rounded_up(offset + bytes);
    if (ftruncate(descriptor_, longer) != 0) return nullptr;
    bytes_ = longer;
  }
  void* const memory =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, offset);
  return memory == MAP_FAILED ? nullptr : memory;
}

void SharedFile::empty(Index offset, Index bytes) noexcept { punch_hole(descriptor_, offset, bytes); }

// The process of this number may not be the one that published it: every container numbers its own processes.
// So this opens only a regular file, which must begin with the right serial number.
const void* map_file_of(Index process, const SharedAddress& address) {
  const std::string path = message("/proc/", process, "/fd/", address.descriptor);
  const auto fail = [&](const std::string& reason) {
    throw CommunicationError(message("cannot read the memory of another rank (", path, "): ", reason));
  };
  const auto succeed = [&](bool has) {
    if (!has) fail(text_of(errno));
  };
  const auto be_ours = [&](bool is_ours) {
    if (!is_ours) fail(message("that is not the file of that rank", in_containers));
  };
  struct stat state {};
  if (stat(path.c_str(), &state) != 0) fail(message(text_of(errno), in_containers));
  be_ours(S_ISREG(state.st_mode) && state.st_size >= address.file_bytes);
  const OpenFile file(path);
  succeed(file.descriptor() >= 0);
  Index found = 0;
  be_ours(pread(file.descriptor(), &found, sizeof found, 0) == sizeof found && found == address.serial);
  const void* const memory = mmap(nullptr, static_cast<std::size_t>(address.file_bytes), PROT_READ,
                                  MAP_SHARED, file.descriptor(), 0);
  succeed(memory != MAP_FAILED);
  return memory;
}

void* SharedMemory::allocate(Index bytes) {
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

bool SharedMemory::release(void* memory) noexcept {
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

SharedAddress SharedMemory::address_of(const void* memory) const {
  const auto* const address = static_cast<const std::byte*>(memory);
  const std::scoped_lock lock(mutex_);
  auto found = blocks_.upper_bound(address);
  if (found == blocks_.begin()) return {};
  --found;
  const auto [offset, bytes] = found->second;
  const Index distance = address - found->first;
  return distance < bytes ? file_->address(offset + distance) : SharedAddress{};
}

// Merges a free range with its free neighbours.
void SharedMemory::add_free(Index offset, Index bytes) {
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

namespace {

#ifdef __linux__
constexpr bool can_share = true;
#else
constexpr bool can_share = false;
#endif

/// Never destroyed, because blocks may be released late.
SharedMemory& memory_of_process() {
  static SharedMemory& memory = *new SharedMemory;
  return memory;
}

class SharedHostBackend final : public HostBackend {
 public:
  std::string name() const override { return "host, shared"; }

  /// Does nothing: other ranks may have the memory mapped.
  void discard(void*, Index) override {}

  const SharedMemory* shared_memory() const override { return &memory_of_process(); }

 private:
  void* do_allocate(Index bytes) override {
    return bytes < sysconf(_SC_PAGESIZE) ? HostBackend::do_allocate(bytes)
                                         : memory_of_process().allocate(bytes);
  }
  void do_release(void* memory) noexcept override {
    if (!memory_of_process().release(memory)) HostBackend::do_release(memory);
  }
};

}  // namespace

SharedAddress shared_address(const Backend& backend, const void* memory) {
  const SharedMemory* const shared = backend.shared_memory();
  return shared == nullptr ? SharedAddress{} : shared->address_of(memory);
}

std::shared_ptr<Backend> make_shared_host_backend() {
  require<UsageError>(can_share, "memory that other ranks can read needs Linux; use the transport mpi");
  return std::make_shared<SharedHostBackend>();
}

}  // namespace gridlops
