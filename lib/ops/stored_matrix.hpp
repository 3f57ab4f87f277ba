// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace gridlops {

/// What operators that store a block of a matrix have in common: see block_hash().
class StoredMatrix {
 public:
  virtual std::uint64_t hash() const = 0;

 protected:
  ~StoredMatrix() = default;
};

}  // namespace gridlops
