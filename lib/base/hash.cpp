// SPDX-License-Identifier: BSD-3-Clause
#include "base/hash.hpp"

#include <xxhash.h>

namespace gridlops {

struct Hash::State {
  XXH3_state_t xxh3;
};

std::uint64_t hash_of_bytes(const void* bytes, Index count, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, static_cast<std::size_t>(count), seed);
}

Hash::Hash() : state_(new State, [](State* state) { delete state; }) { XXH3_64bits_reset(&state_->xxh3); }

void Hash::add(const void* bytes, Index count) {
  XXH3_64bits_update(&state_->xxh3, bytes, static_cast<std::size_t>(count));
}

std::uint64_t Hash::value() const { return XXH3_64bits_digest(&state_->xxh3); }

}  // namespace gridlops
