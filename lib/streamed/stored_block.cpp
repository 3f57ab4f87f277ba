// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/stored_block.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

namespace {

/// Whether products with Aᴴ use all parts as those with A do, and take the same passes.
bool have_one_order(const std::vector<StoredBlockBase*>& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const StoredBlockBase* block) {
    return block->order(Op::none, 0) == block->order(Op::adjoint, 0);
  });
}

}  // namespace

StoredParts::Pass StoredBlockBase::pass(Op op) const {
  require<UsageError>(parts_ != nullptr,
                      "this matrix of a series does not work now: call start() with its number before");
  return {*parts_, passes_[op == Op::none ? 0 : 1]};
}

std::shared_ptr<StoredParts> take_parts(const std::shared_ptr<Backend>& backend, PartPlan plan,
                                        std::vector<StoredBlockBase*> blocks) {
  const Index passes = std::ssize(blocks) * (have_one_order(blocks) ? 1 : 2);
  std::vector<Index> first_parts{0};
  for (const StoredBlockBase* block : blocks)
    first_parts.push_back(first_parts.back() + block->parts().count());
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

void use_parts(const std::shared_ptr<StoredParts>& parts, const std::vector<StoredBlockBase*>& blocks) {
  const Index count = std::ssize(blocks), first_adjoint = have_one_order(blocks) ? 0 : count;
  for (Index k = 0; k < count; ++k) blocks[at(k)]->use(parts, k, first_adjoint + k);
}

}  // namespace gridlops
