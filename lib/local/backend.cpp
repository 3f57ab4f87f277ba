// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/local/backend.hpp"

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "base/at_work.hpp"
#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "local/host_backend.hpp"
#include "local/threads.hpp"

namespace gridlops {

Backend::~Backend() = default;

void* Backend::allocate(Index bytes) {
  require_here<UsageError>(bytes >= 0, "cannot allocate ", bytes, " bytes: a size is negative");
  if (bytes == 0) return nullptr;
  ++allocations_;
  void* memory = do_allocate(bytes);
  require<OutOfMemory>(
      memory != nullptr, "the ", name(), " backend has no ", bytes, " bytes (", bytes >> 20,
      " MiB) left for one array",
      "; use more ranks or nodes, fewer right-hand sides at a time, or a shorter element type");
  return memory;
}

void Backend::discard(void*, Index) {}

void Backend::for_each(Index count, double, const std::function<void(Index)>& work) {
  for (Index i = 0; i < count; ++i) work(i);
}

void Backend::release(void* memory) noexcept {
  if (memory != nullptr) do_release(memory);
}

namespace {

constexpr Index alignment = 64;  // a cache line, and the widest vector register
constexpr Index large_page = 2 << 20;

void move(const void* from, void* to, Index bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void HostBackend::discard(void* memory, Index bytes) {
#if defined(MADV_DONTNEED)
  // Returns only whole large pages, so that the system splits none.
  const auto begin = reinterpret_cast<std::uintptr_t>(memory), unit = std::uintptr_t{large_page};
  const std::uintptr_t first = (begin + unit - 1) / unit * unit;
  const std::uintptr_t end = (begin + static_cast<std::uintptr_t>(bytes)) / unit * unit;
  if (first < end)
    static_cast<void>(madvise(static_cast<std::byte*>(memory) + (first - begin), end - first, MADV_DONTNEED));
#endif
}

void HostBackend::upload(const void* host, void* here, Index bytes) { move(host, here, bytes); }

void HostBackend::download(const void* here, void* host, Index bytes) { move(here, host, bytes); }

void HostBackend::for_each(Index count, double operations, const std::function<void(Index)>& work) {
  const AtWork at_work;
  for_each_of(count, operations, work);
}

void* HostBackend::do_allocate(Index bytes) {
  // With large pages a matrix needs fewer TLB entries.
  const bool is_large = bytes >= 2 * large_page;
  const Index unit = is_large ? large_page : alignment;
  if (bytes > std::numeric_limits<Index>::max() - unit) return nullptr;
  const auto rounded = static_cast<std::size_t>((bytes + unit - 1) / unit * unit);
  void* const memory = std::aligned_alloc(static_cast<std::size_t>(unit), rounded);
#if defined(MADV_HUGEPAGE)
  // The system may ignore this advice; then pages are small. So are those of the rest, which would fill a
  // large one in part.
  if (is_large && memory != nullptr)
    static_cast<void>(
        madvise(memory, static_cast<std::size_t>(bytes / large_page * large_page), MADV_HUGEPAGE));
#endif
  return memory;
}

void HostBackend::do_release(void* memory) noexcept { std::free(memory); }

std::shared_ptr<Backend> make_host_backend() { return std::make_shared<HostBackend>(); }

}  // namespace gridlops
