// SPDX-License-Identifier: BSD-3-Clause
#include "comm/scratch.hpp"

#include <atomic>

#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

void ScratchStack::renew_serials() {
  static std::atomic<Index> last{0};
  common_->round = ++last;
}

void ScratchStack::release() {
  renew_serials();
  memory_ = {};
  if (inner_ != nullptr) inner_->release();
}

const std::shared_ptr<ScratchStack>& ScratchStack::inner() {
  if (inner_ == nullptr) inner_.reset(new ScratchStack(backend_, common_, depth_ + 1));
  return inner_;
}

std::byte* ScratchStack::push(Index bytes) {
  require_here<UsageError>(bytes <= memory_.size() - in_use_, "an operator uses ", bytes,
                           " bytes of scratch memory, but reserved ", memory_.size() - in_use_,
                           "; this is a fault of its scratch_bytes()");
  std::byte* const array = memory_.data() + in_use_;
  in_use_ += bytes;
  return array;
}

ScratchStack& detail::scratch_of(const ProcessGrid& grid) {
  if (grid.scratch_ == nullptr) grid.scratch_ = std::make_shared<ScratchStack>(grid.backend_);
  return *grid.scratch_;
}

InnerScratch::InnerScratch(const ProcessGrid& grid) : grid_(grid) {
  outer_ = std::exchange(grid.scratch_, detail::scratch_of(grid).inner());
}

InnerScratch::~InnerScratch() { grid_.scratch_ = std::move(outer_); }

void release_scratch(const ProcessGrid& grid) {
  if (grid.scratch_ != nullptr) grid.scratch_->release();
}

}  // namespace gridlops
