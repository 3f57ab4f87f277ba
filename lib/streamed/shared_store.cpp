// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/shared_store.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

void SharedStore::append(const std::shared_ptr<Backend>& backend,
                         const std::shared_ptr<StoredBlockBase>& block, const WriteBlock& store) {
  stop();
  backend_ = backend;
  const PartPlan& plan = block->parts();
  std::vector<Index> places;
  std::vector<std::uint64_t> hashes(plan.bytes.size());
  Index end = places_.back();
  for (Index part = 0; part < plan.count(); ++part) {
    places.push_back(end);
    end += plan.file_bytes(part);
  }
  if (!file_) file_ = std::make_shared<DiskFile>(DiskFile::nameless(on_disk_.scratch, 0));
  file_->take_room(end);
  store(
      [&](Index part, Index begin, const std::byte* from, Index bytes) {
        hashes[at(part)] += StoredParts::hash_of(begin, from, bytes);
        file_->write(from, bytes, places[at(part)] + begin);
      },
      [&](Index bytes) { return file_->writing(bytes); });
  file_->finish();
  bytes_.insert(bytes_.end(), plan.bytes.begin(), plan.bytes.end());
  hashes_.insert(hashes_.end(), hashes.begin(), hashes.end());
  first_parts_.push_back(std::ssize(bytes_));
  places_.push_back(end);
  blocks_.push_back(block);
}

/// Forgets all blocks from this number on.
void SharedStore::drop_from(Index number) {
  stop();
  blocks_.resize(std::min(blocks_.size(), at(number)));
  first_parts_.resize(blocks_.size() + 1);
  places_.resize(blocks_.size() + 1);
  bytes_.resize(at(first_parts_.back()));
  hashes_.resize(bytes_.size());
}

PartPlan SharedStore::plan(Index memory, Range blocks) const {
  require<UsageError>(0 <= blocks.begin && 0 <= blocks.size && blocks.end() <= count() && memory >= 0,
                      "a series of ", count(), " matrices has no ", blocks.size, " from ", blocks.begin,
                      " on, or no ", memory, " bytes");
  Index together = 1;
  for (Index k = blocks.begin; k < blocks.end(); ++k)
    together = std::max(together, blocks_[at(k)]->parts_together());
  const auto begin = bytes_.begin();
  return {std::vector<Index>(begin + first_parts_[at(blocks.begin)], begin + first_parts_[at(blocks.end())]),
          together + PartPlan::ahead, memory};
}

void SharedStore::start(Index memory, Range blocks) {
  stop();
  PartPlan plan_of_parts = plan(memory, blocks);
  if (blocks.size == 0) return;
  std::vector<StoredBlockBase*> at_work;
  for (Index k = blocks.begin; k < blocks.end(); ++k) at_work.push_back(blocks_[at(k)].get());
  parts_ = take_parts(backend_, std::move(plan_of_parts), at_work);
  const auto begin = hashes_.begin();
  parts_->set_hashes({begin + first_parts_[at(blocks.begin)], begin + first_parts_[at(blocks.end())]});
  parts_->put_in(file_, true, places_[at(blocks.begin)]);
  parts_->read_residents();
  parts_->start_reading();
  use_parts(parts_, at_work);
}

/// Frees the memory of those that work.
void SharedStore::stop() {
  bytes_read_ = bytes_read();
  seconds_waited_ = seconds_waited();
  for (const auto& block : blocks_) block->use(nullptr, 0, 0);
  parts_ = nullptr;
}

}  // namespace gridlops
