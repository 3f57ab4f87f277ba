// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/local/backend.hpp"
#include "ops/stationary/local_block.hpp"
#include "streamed/disk/part_plan.hpp"
#include "streamed/disk/stored_parts.hpp"

namespace gridlops {

/// A rank's block of a matrix, cut into parts that are stored elsewhere: in a series, or by themselves
/// (own()).
class StoredBlockBase {
 public:
  using WritePart = std::function<void(Index part, Index begin, const std::byte* from, Index bytes)>;
  /// Begins the wait for this many bytes to be written.
  using BeginWait = std::function<DiskWait(Index bytes)>;

  StoredBlockBase() = default;
  StoredBlockBase(const StoredBlockBase&) = delete;
  StoredBlockBase& operator=(const StoredBlockBase&) = delete;
  virtual ~StoredBlockBase() = default;
  virtual const PartPlan& parts() const = 0;
  /// How many parts a product uses at a time, at most.
  virtual Index parts_together() const = 0;
  /// The order in which a product uses the parts, which are numbered from `first` on.
  virtual std::vector<Index> order(Op op, Index first) const = 0;
  /// Calls use(begin, bytes) for the pieces in which a part is written.
  virtual void for_each_piece(Index part, const StoredParts::UsePiece& use) const = 0;
  /// From now on products take what was written from there, in these two passes. Null: from nowhere.
  void use(std::shared_ptr<StoredParts> parts, Index forward, Index adjoint) {
    parts_ = std::move(parts);
    passes_ = {forward, adjoint};
  }
  /// Says that no other block has these parts, so that they are among what this one keeps and reads.
  void own(std::shared_ptr<StoredParts> parts) { own_parts_ = std::move(parts); }

 protected:
  /// Lets go of its parts, whose threads ask this block for pieces. Call it in the destructor.
  void stop() { parts_ = own_parts_ = nullptr; }
  /// The pass of a product. Throws UsageError, on this rank alone, if the block takes its parts from nowhere.
  StoredParts::Pass pass(Op op) const;
  /// Null if others may have the parts.
  const StoredParts* own_parts() const { return own_parts_.get(); }

 private:
  std::shared_ptr<StoredParts> parts_, own_parts_;
  std::array<Index, 2> passes_{};  // forward, adjoint
};

/// Such a block with its products, on disks or in memory.
template <Scalar T>
class StoredBlock : public LocalBlock<T>, public StoredBlockBase {
 public:
  void add_kept_bytes(KeptBytes& kept) const override {
    if (own_parts() != nullptr) kept.add(own_parts(), own_parts()->plan().bytes_in_memory());
  }
  Index bytes_read() const final { return own_parts() ? own_parts()->bytes_read() : 0; }
  double seconds_waited() const final { return own_parts() ? own_parts()->seconds_waited() : 0; }
};

/// Takes memory for the parts of these blocks, one block after the other as the plan has them, which are used
/// by products with each block, then by those with each adjoint, and so on. The blocks must outlive it.
std::shared_ptr<StoredParts> take_parts(const std::shared_ptr<Backend>& backend, PartPlan plan,
                                        std::vector<StoredBlockBase*> blocks);
/// Products with these blocks take what was written from these parts.
void use_parts(const std::shared_ptr<StoredParts>& parts, const std::vector<StoredBlockBase*>& blocks);

}  // namespace gridlops
