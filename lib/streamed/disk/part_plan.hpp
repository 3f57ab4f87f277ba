// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/numbers.hpp"
#include "streamed/disk/read_ahead.hpp"

namespace gridlops {

/// Where the parts of a rank's block are. Some stay in memory. They are spread evenly over the block, so that
/// a disk is busy while products compute with them; the others are in a file and pass through the slots of a
/// ring.
struct PartPlan {
  std::vector<Index> bytes{};  ///< of each part
  std::vector<char> stays{};   ///< in memory
  Index slots = 0;
  Index slot_bytes = 0;    ///< a multiple of DiskFile::block
  Index staging_each = 0;  ///< of a thread that reads, a multiple of DiskFile::block

  PartPlan() = default;
  /// All in memory.
  explicit PartPlan(std::vector<Index> bytes_of_parts)
      : bytes(std::move(bytes_of_parts)), stays(bytes.size(), 1) {}
  /// `memory` bytes in memory, with a ring of this many slots, or as few more as that takes.
  PartPlan(std::vector<Index> bytes_of_parts, Index slots_of_ring, Index memory, Index staging = 0)
      : PartPlan(std::move(bytes_of_parts)) {
    staging_each = staging;
    const auto not_empty = std::ssize(bytes) - std::count(bytes.begin(), bytes.end(), Index{0});
    if (slots_of_ring >= not_empty || bytes_in_memory() <= memory) return;
    slots = slots_of_ring;
    Index least = 0;
    for (Index beyond = count(); beyond - least > 1;) {
      const Index residents = (least + beyond) / 2;
      keep(residents);
      (bytes_in_memory() <= memory ? least : beyond) = residents;
    }
    keep(least);
  }

  /// The length that parts should have, of which some are used `together`: long enough that a disk delivers
  /// them at its full rate, as far as the memory allows.
  static Index good_bytes(Index together, Index memory) {
    constexpr Index long_enough = Index{16} << 20;
    return std::max(least_bytes, std::min(std::max(long_enough, together), memory / (4 * ahead)));
  }
  /// How many slots can be read meanwhile, and those of a ring of which one part is used at a time.
  static constexpr Index ahead = 3, least_slots = 1 + ahead;
  static constexpr Index least_bytes = Index{1} << 18;

  Index count() const { return std::ssize(bytes); }
  bool is_resident(Index part) const { return stays[at(part)] != 0; }
  /// The bytes of a part in a file.
  Index file_bytes(Index part) const {
    return (bytes[at(part)] + DiskFile::block - 1) / DiskFile::block * DiskFile::block;
  }
  Index staging_bytes() const { return ReadAhead::threads * staging_each; }
  /// With what aligns the ring and the staging.
  Index bytes_in_memory() const {
    const Index aligned = slots * slot_bytes + staging_bytes();
    Index sum = aligned > 0 ? DiskFile::block + aligned : 0;
    for (Index part = 0; part < count(); ++part) sum += is_resident(part) ? bytes[at(part)] : 0;
    return sum;
  }
  Index bytes_on_disk() const {
    Index sum = 0;
    for (Index part = 0; part < count(); ++part) sum += is_resident(part) ? 0 : file_bytes(part);
    return sum;
  }

 private:
  void keep(Index residents) {
    slot_bytes = 0;
    for (Index part = 0; part < count(); ++part) {
      const bool is_chosen = (part + 1) * residents / count() > part * residents / count();
      stays[at(part)] = is_chosen || bytes[at(part)] == 0 ? 1 : 0;
      if (!is_resident(part)) slot_bytes = std::max(slot_bytes, file_bytes(part));
    }
  }
};

}  // namespace gridlops
