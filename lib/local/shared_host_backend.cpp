// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>
#include <unistd.h>

#include <map>

#include "base/message.hpp"
#include "gridlops/error.hpp"
#include "local/host_backend.hpp"

namespace gridlops {

namespace {

#ifdef __linux__
constexpr bool can_share = true;
/// A file without a name: it is gone with the last process that has it mapped, however that ends.
int anonymous_file() { return memfd_create("gridlops", MFD_CLOEXEC); }
#else
constexpr bool can_share = false;
int anonymous_file() { return -1; }
#endif

Index last_serial = 0;  // of this process, whatever the backend

class SharedHostBackend final : public HostBackend {
 public:
  std::string name() const override { return "host, shared"; }

  ~SharedHostBackend() override {
    while (!files_.empty()) do_release(const_cast<std::byte*>(files_.begin()->first));
  }

  /// Others may have it mapped.
  void discard(void*, Index) override {}

  bool shares_memory() const override { return true; }
  SharedPlace shared_place(const void* memory) const override {
    const auto* const address = static_cast<const std::byte*>(memory);
    auto found = files_.upper_bound(address);
    if (found == files_.begin()) return {};
    --found;
    const Index offset = address - found->first;
    const File& file = found->second;
    return offset < file.bytes ? SharedPlace{file.descriptor, file.serial, file.bytes, offset}
                               : SharedPlace{};
  }

 private:
  struct File {
    int descriptor;
    Index serial, bytes;
  };

  void* do_allocate(Index bytes) override {
    if (bytes < sysconf(_SC_PAGESIZE)) return HostBackend::do_allocate(bytes);
    const int descriptor = anonymous_file();
    if (descriptor < 0) return nullptr;
    void* memory = MAP_FAILED;
    if (ftruncate(descriptor, bytes) == 0) {
      memory =
          mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    }
    if (memory == MAP_FAILED) {
      close(descriptor);
      return nullptr;
    }
    files_[static_cast<std::byte*>(memory)] = {descriptor, ++last_serial, bytes};
    return memory;
  }

  void do_release(void* memory) noexcept override {
    const auto found = files_.find(static_cast<std::byte*>(memory));
    if (found == files_.end()) return HostBackend::do_release(memory);
    munmap(memory, static_cast<std::size_t>(found->second.bytes));
    close(found->second.descriptor);
    files_.erase(found);
  }

  std::map<const std::byte*, File> files_;
};

}  // namespace

std::shared_ptr<Backend> make_shared_host_backend() {
  require<UsageError>(can_share, "memory that other ranks can read needs Linux; use the transport mpi");
  return std::make_shared<SharedHostBackend>();
}

}  // namespace gridlops
