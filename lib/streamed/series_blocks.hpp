// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/local/backend.hpp"
#include "gridlops/streamed/streamed_matrix.hpp"
#include "ops/stationary/local_block.hpp"
#include "streamed/disk/part_plan.hpp"
#include "streamed/disk/stored_parts.hpp"
#include "streamed/disk/tile_file.hpp"

namespace gridlops {

/// A rank's block of a matrix, cut into parts that are stored elsewhere: in a series, or by themselves
/// (own()).
class SeriesBlock {
 public:
  using WritePart = std::function<void(Index part, Index begin, const std::byte* from, Index bytes)>;
  /// Begins the wait for this many bytes to be written.
  using BeginWait = std::function<DiskWait(Index bytes)>;

  SeriesBlock() = default;
  SeriesBlock(const SeriesBlock&) = delete;
  SeriesBlock& operator=(const SeriesBlock&) = delete;
  virtual ~SeriesBlock() = default;
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
class StoredBlock : public LocalBlock<T>, public SeriesBlock {
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
                                        std::vector<SeriesBlock*> blocks);
/// Products with these blocks take what was written from these parts.
void use_parts(const std::shared_ptr<StoredParts>& parts, const std::vector<SeriesBlock*>& blocks);

/// Blocks that share a file, and memory, of a rank. What throws does so on this rank alone.
class SeriesBlocks {
 public:
  explicit SeriesBlocks(StreamOptions on_disk) : on_disk_(std::move(on_disk)) {}
  ~SeriesBlocks() { stop(); }
  SeriesBlocks(const SeriesBlocks&) = delete;
  SeriesBlocks& operator=(const SeriesBlocks&) = delete;

  const StreamOptions& options() const { return on_disk_; }

  using Store = std::function<void(const SeriesBlock::WritePart& write, const SeriesBlock::BeginWait& wait)>;
  /// Appends what store(write, wait) writes of a block to the file. Ends what start() began.
  void append(const std::shared_ptr<Backend>& backend, const std::shared_ptr<SeriesBlock>& block,
              const Store& store);
  /// Returns add(). If that throws, forgets what it has appended, which another rank may not have.
  template <class Add>
  auto all_or_none(Add&& add) {
    const Index before = count();
    try {
      return add();
    } catch (...) {
      drop_from(before);
      throw;
    }
  }

  /// Returns the parts that start() keeps in this memory. Throws UsageError.
  PartPlan plan(Index memory, Range blocks) const;
  /// See StreamedSeries.
  void start(Index memory, Range blocks);

  Index count() const { return std::ssize(blocks_); }
  Index bytes_on_disk() const { return places_.back(); }
  Index bytes_read() const { return bytes_read_ + (parts_ ? parts_->bytes_read() : 0); }
  double seconds_waited() const { return seconds_waited_ + (parts_ ? parts_->seconds_waited() : 0); }

 private:
  void drop_from(Index number);
  void stop();

  StreamOptions on_disk_;
  std::shared_ptr<Backend> backend_;
  std::shared_ptr<TileFile> file_;
  std::vector<std::shared_ptr<SeriesBlock>> blocks_;
  std::vector<Index> first_parts_{0}, places_{0};  // of each block, in the file; and the ends
  // Of the parts of all blocks.
  std::vector<Index> bytes_;
  std::vector<std::uint64_t> hashes_;
  std::shared_ptr<StoredParts> parts_;  // of the blocks that work
  Index bytes_read_ = 0;                // of those that worked before
  double seconds_waited_ = 0;
};

}  // namespace gridlops
