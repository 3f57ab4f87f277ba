// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/backend.hpp"

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

Backend::~Backend() = default;

void* Backend::allocate(Index bytes) {
  require<UsageError>(bytes >= 0, "cannot allocate ", bytes, " bytes: a size is negative");
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

void Backend::release(void* memory) noexcept {
  if (memory != nullptr) do_release(memory);
}

}  // namespace gridlops
