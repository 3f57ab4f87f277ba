// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/streamed/streamed_matrix.hpp"
#include "streamed/disk/disk_file.hpp"
#include "streamed/stored_block.hpp"

namespace gridlops {

/// Blocks that share a file, and memory, of a rank. What throws does so on this rank alone.
class SharedStore {
 public:
  explicit SharedStore(StreamOptions on_disk) : on_disk_(std::move(on_disk)) {}
  ~SharedStore() { stop(); }
  SharedStore(const SharedStore&) = delete;
  SharedStore& operator=(const SharedStore&) = delete;

  const StreamOptions& options() const { return on_disk_; }

  using WriteBlock =
      std::function<void(const StoredBlockBase::WritePart& write, const StoredBlockBase::BeginWait& wait)>;
  /// Appends what store(write, wait) writes of a block to the file. Ends what start() began.
  void append(const std::shared_ptr<Backend>& backend, const std::shared_ptr<StoredBlockBase>& block,
              const WriteBlock& store);
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
  std::shared_ptr<DiskFile> file_;
  std::vector<std::shared_ptr<StoredBlockBase>> blocks_;
  std::vector<Index> first_parts_{0}, places_{0};  // of each block, in the file; and the ends
  // Of the parts of all blocks.
  std::vector<Index> bytes_;
  std::vector<std::uint64_t> hashes_;
  std::shared_ptr<StoredParts> parts_;  // of the blocks that work
  Index bytes_read_ = 0;                // of those that worked before
  double seconds_waited_ = 0;
};

}  // namespace gridlops
