// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gridlops/local/buffer.hpp"
#include "streamed/disk/disk_file.hpp"
#include "streamed/disk/part_plan.hpp"
#include "streamed/disk/read_ahead.hpp"

namespace gridlops {

/// The parts of a rank's block, in memory and in a file as a plan says. They are written once, in pieces and
/// in any order, or taken from a file of the user's, and then used in passes. A hash of each part that is
/// read, the sum of its pieces', is compared when it is first read, and with GRIDLOPS_CHECK=all, or where the
/// file is the user's, each time. What throws does so on this rank alone.
class StoredParts {
 public:
  using UsePiece = std::function<void(Index begin, Index bytes)>;
  /// Calls use(begin, bytes) for the pieces in which a part is written.
  using Pieces = std::function<void(Index part, const UsePiece& use)>;
  /// In which order a pass uses the parts, and which pass usually follows.
  using Order = ReadAhead::Order;

  /// Takes the memory. Throws OutOfMemory.
  StoredParts(std::shared_ptr<Backend> backend, PartPlan plan, std::vector<Order> passes, Pieces pieces);

  const PartPlan& plan() const { return plan_; }
  /// Takes the file for the parts that do not stay in memory, or for all, one after the other from `begin`
  /// on.
  void put_in(std::shared_ptr<DiskFile> file, bool has_all = false, Index begin = 0);
  Index bytes_in_file(bool has_all) const;
  /// Returns the wait for this many bytes to be written; its caller keeps it meanwhile.
  DiskWait writing(Index bytes) const { return file_ ? file_->writing(bytes) : DiskWait(""); }
  void write(Index part, Index begin, const std::byte* from, Index bytes);
  /// Brings the parts that stay in memory there, from a file that has all. Throws InputError.
  void read_residents();
  /// Call once after the last write: the data go to the disk. Throws OutputError.
  void finish();
  DiskFile& file() { return *file_; }
  /// Reads ahead from now on, for the first pass. Call it before the first one, where not all is in memory.
  void start_reading();
  /// Takes all parts from where the source has them, instead of writing them, and then reads ahead. Calls
  /// visit(part, memory) for each, once. Throws InputError.
  void take_from(std::unique_ptr<const PartSource> source,
                 const std::function<void(Index part, const std::byte* memory)>& visit);

  /// The hash of a piece; that of a part is the sum.
  static std::uint64_t hash_of(Index begin, const std::byte* piece, Index bytes);
  /// The hashes of all parts, where the file has all.
  const std::vector<std::uint64_t>& hashes() const { return hashes_; }
  void set_hashes(std::vector<std::uint64_t> hashes) { hashes_ = std::move(hashes); }

  Index bytes_read() const { return residents_read_ + (reader_ ? reader_->bytes_read() : 0); }
  double seconds_waited() const { return reader_ ? reader_->seconds_waited() : 0; }

  /// The parts while a product uses them.
  class Pass {
   public:
    /// number: of the order.
    Pass(StoredParts& parts, Index number);
    /// The k-th part in this order, until it is released; no earlier than those before it. Throws InputError
    /// if it cannot be read, or has other bytes than were written. The next pass tries again.
    const std::byte* get(Index k) const;
    /// The parts before the k-th are no longer used.
    void release_before(Index k) const;

   private:
    StoredParts& parts_;
    const Order& order_;
    const std::vector<Index>& read_before_;
  };

 private:
  bool is_in_file(Index part) const { return file_ && (has_all_ || !plan_.is_resident(part)); }
  std::byte* resident(Index part) const { return residents_ + places_[at(part)]; }
  std::uint64_t hash_of(Index part, const std::byte* memory) const;
  void check(Index part, const std::byte* memory);
  void read_ahead();
  void take_residents();

  const std::shared_ptr<Backend> backend_;
  const PartPlan plan_;
  const std::vector<Order> passes_;
  const Pieces pieces_;
  std::vector<std::vector<Index>> read_before_;  // of each pass: how many of the parts before are read
  Buffer<std::byte> memory_;                     // of the ring, and of resident parts
  std::byte *ring_ = nullptr, *staging_ = nullptr, *residents_ = nullptr;
  std::shared_ptr<DiskFile> file_;
  std::unique_ptr<const PartSource> source_;  // of what is read ahead
  bool has_all_ = false, is_in_place_ = false;
  std::vector<Index> places_, places_in_file_;  // where parts begin among the residents, and in the file
  std::vector<std::uint64_t> hashes_;
  std::vector<std::atomic<bool>> is_checked_;  // the ring may have a part twice
  Index residents_read_ = 0;                   // in bytes
  std::atomic<bool> checks_all_{false};
  std::unique_ptr<ReadAhead> reader_;  // none if all is in memory
};

}  // namespace gridlops
