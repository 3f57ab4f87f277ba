// SPDX-License-Identifier: BSD-3-Clause
#include "local/tiles/workspace.hpp"

#include <algorithm>
#include <utility>

namespace gridlops {

thread_local std::vector<WorkspaceMemory::Block> WorkspaceMemory::kept;

WorkspaceMemory::WorkspaceMemory(std::size_t bytes) {
  const auto found =
      std::find_if(kept.begin(), kept.end(), [=](const Block& block) { return block.bytes >= bytes; });
  if (found != kept.end()) {
    block_ = std::move(*found);
    kept.erase(found);
  } else {
    block_.memory.reset(static_cast<std::byte*>(::operator new[](bytes, line)));
    block_.bytes = bytes;
  }
}

WorkspaceMemory::~WorkspaceMemory() {
  constexpr std::size_t largest = std::size_t{64} << 20, most = 3;
  if (block_.bytes > largest) return;
  try {
    const auto larger = [&](const Block& block) { return block.bytes >= block_.bytes; };
    kept.insert(std::find_if(kept.begin(), kept.end(), larger), std::move(block_));
    if (kept.size() > most) kept.erase(kept.begin());
  } catch (const std::bad_alloc&) {  // then it is not kept
    return;
  }
}

}  // namespace gridlops
