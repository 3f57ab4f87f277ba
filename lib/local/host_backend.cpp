// SPDX-License-Identifier: BSD-3-Clause
#include "local/host_backend.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace gridlops {

namespace {

constexpr Index alignment = 64;  // a cache line, and the widest vector register

void move(const void* from, void* to, Index bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

}  // namespace

void HostBackend::upload(const void* host, void* here, Index bytes) { move(host, here, bytes); }

void HostBackend::download(const void* here, void* host, Index bytes) { move(here, host, bytes); }

void* HostBackend::do_allocate(Index bytes) {
  if (bytes > std::numeric_limits<Index>::max() - alignment) return nullptr;
  const Index rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, static_cast<std::size_t>(rounded));
}

void HostBackend::do_release(void* memory) noexcept { std::free(memory); }

std::shared_ptr<Backend> make_host_backend() { return std::make_shared<HostBackend>(); }

}  // namespace gridlops
