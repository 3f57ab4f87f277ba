// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// The XXH3 hash (64 bits) of bytes in the host's memory, with a seed. All hashes of the library are of this
/// kind.
std::uint64_t hash_of_bytes(const void* bytes, Index count, std::uint64_t seed = 0);
inline std::uint64_t hash_of_text(std::string_view text) {
  return hash_of_bytes(text.data(), static_cast<Index>(text.size()));
}

/// Computes the hash (with seed 0) of bytes that come piece by piece.
class Hash {
 public:
  Hash();
  void add(const void* bytes, Index count);
  std::uint64_t value() const;

 private:
  struct State;
  std::unique_ptr<State, void (*)(State*)> state_;
};

}  // namespace gridlops
