// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/series_blocks.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

/// Whether products with Aᴴ use all parts as those with A do, and take the same passes.
bool have_one_order(const std::vector<SeriesBlock*>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const SeriesBlock* block) {
    return block->order(Op::none, 0) == block->order(Op::adjoint, 0);
  });
}

}  // namespace

StoredParts::Pass SeriesBlock::pass(Op op) const {
  require<UsageError>(parts_ != nullptr,
                      "this matrix of a series does not work now: call start() with its number before");
  return {*parts_, passes_[op == Op::none ? 0 : 1]};
}

std::shared_ptr<StoredParts> take_parts(const std::shared_ptr<Backend>& backend, PartPlan plan,
                                        std::vector<SeriesBlock*> blocks) {
  const Index passes = std::ssize(blocks) * (have_one_order(blocks) ? 1 : 2);
  std::vector<Index> first_parts{0};
  for (const SeriesBlock* block : blocks) first_parts.push_back(first_parts.back() + block->parts().count());
  std::vector<StoredParts::Order> orders;
  for (Index pass = 0; pass < passes; ++pass) {
    const Index block = pass % std::ssize(blocks);
    orders.push_back(
        {blocks[at(block)]->order(pass == block ? Op::none : Op::adjoint, first_parts[at(block)]),
         (pass + 1) % passes});
  }
  return std::make_shared<StoredParts>(
      backend, std::move(plan), std::move(orders),
      [blocks = std::move(blocks), first_parts](Index part, const StoredParts::UsePiece& use) {
        const auto end = std::upper_bound(first_parts.begin(), first_parts.end(), part);
        const auto block = end - first_parts.begin() - 1;
        blocks[at(block)]->for_each_piece(part - first_parts[at(block)], use);
      });
}

void use_parts(const std::shared_ptr<StoredParts>& parts, const std::vector<SeriesBlock*>& blocks) {
  const Index count = std::ssize(blocks), first_adjoint = have_one_order(blocks) ? 0 : count;
  for (Index k = 0; k < count; ++k) blocks[at(k)]->use(parts, k, first_adjoint + k);
}

void SeriesBlocks::append(const std::shared_ptr<Backend>& backend, const std::shared_ptr<SeriesBlock>& block,
                          const Store& store) {
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
  if (!file_) file_ = std::make_shared<TileFile>(TileFile::nameless(on_disk_.scratch, 0));
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
void SeriesBlocks::drop_from(Index number) {
  stop();
  blocks_.resize(std::min(blocks_.size(), at(number)));
  first_parts_.resize(blocks_.size() + 1);
  places_.resize(blocks_.size() + 1);
  bytes_.resize(at(first_parts_.back()));
  hashes_.resize(bytes_.size());
}

PartPlan SeriesBlocks::plan(Index memory, Range blocks) const {
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

void SeriesBlocks::start(Index memory, Range blocks) {
  stop();
  PartPlan plan_of_parts = plan(memory, blocks);
  if (blocks.size == 0) return;
  std::vector<SeriesBlock*> at_work;
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
void SeriesBlocks::stop() {
  bytes_read_ = bytes_read();
  seconds_waited_ = seconds_waited();
  for (const auto& block : blocks_) block->use(nullptr, 0, 0);
  parts_ = nullptr;
}

}  // namespace gridlops
