// SPDX-License-Identifier: BSD-3-Clause
#include "comm/scratch.hpp"

#include <algorithm>

namespace gridlops {

void ScratchStack::reserve(Index bytes) {
  most_in_use_ = std::max(most_in_use_, in_use_ + bytes);
  if (places_.empty() && blocks_.size() > 1) {
    // All that was ever in use at once fits into one block.
    blocks_.clear();
    blocks_.emplace_back(backend_, most_in_use_);
  }
  make_room(bytes);
}

void ScratchStack::make_room(Index bytes) {
  const Place place = top();
  for (std::size_t block = place.block; block < blocks_.size(); ++block) {
    const Index taken = block == place.block ? place.end : 0;
    if (bytes <= blocks_[block].size() - taken) return;
    if (taken == 0) return blocks_[block].reserve(backend_, bytes);
  }
  blocks_.emplace_back(backend_, bytes);
}

std::byte* ScratchStack::push(Index bytes) {
  make_room(bytes);
  Place place = top();
  if (blocks_[place.block].size() - place.end < bytes) place = {place.block + 1, 0};
  std::byte* const array = blocks_[place.block].data() + place.end;
  place.end += bytes;
  places_.push_back(place);
  in_use_ += bytes;
  most_in_use_ = std::max(most_in_use_, in_use_);
  return array;
}

void ScratchStack::pop(Index bytes) {
  places_.pop_back();
  in_use_ -= bytes;
}

ScratchStack& detail::scratch_of(const ProcessGrid& grid) {
  if (grid.scratch_ == nullptr) grid.scratch_ = std::make_shared<ScratchStack>(grid.backend_);
  return *grid.scratch_;
}

}  // namespace gridlops
