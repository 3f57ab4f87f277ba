// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// Uninitialised memory for one product, aligned to cache lines. Each thread keeps the largest three, up to
/// 64 MiB each, for its next products: the system clears new memory page by page, which takes as long as a
/// small product.
class WorkspaceMemory {
 public:
  explicit WorkspaceMemory(std::size_t bytes);
  ~WorkspaceMemory();
  WorkspaceMemory(const WorkspaceMemory&) = delete;
  WorkspaceMemory& operator=(const WorkspaceMemory&) = delete;

 protected:
  static constexpr std::align_val_t line{64};
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete[](memory, line); }
  };
  struct Block {
    std::size_t bytes = 0;
    std::unique_ptr<std::byte, Delete> memory;
  };
  Block block_;

 private:
  static thread_local std::vector<Block> kept;
};

/// Such memory for `count` elements.
template <class Element>
class Workspace : private WorkspaceMemory {
 public:
  explicit Workspace(Index count) : WorkspaceMemory(static_cast<std::size_t>(count) * sizeof(Element)) {}
  Element* data() const { return reinterpret_cast<Element*>(block_.memory.get()); }
};

}  // namespace gridlops
