// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <map>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// The memory that operators keep on a rank, where what they share counts once: see
/// LinearOperator::add_kept_bytes().
/// Reasons: docs/decisions/0058-planned-memory.md.
class KeptBytes {
 public:
  /// Adds memory that belongs to this owner. An owner that is named again has the larger of both.
  void add(const void* owner, Index bytes) {
    Index& kept = of_owners_[owner];
    kept = std::max(kept, bytes);
  }

  Index total() const {
    Index bytes = 0;
    for (const auto& [owner, kept] : of_owners_) bytes += kept;
    return bytes;
  }

 private:
  std::map<const void*, Index> of_owners_;
};

}  // namespace gridlops
