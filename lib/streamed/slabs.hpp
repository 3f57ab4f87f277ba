// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "gridlops/local/backend.hpp"
#include "local/products/tile_order.hpp"
#include "ops/matrix/panels.hpp"
#include "streamed/tile_file.hpp"

namespace gridlops {

/// How a block in tiles is cut into slabs: some strips each, of all columns. Some slabs stay in memory. They
/// are spread evenly over the block, so that a disk is busy while products compute with them; the others are
/// on the disk, one after the other, and pass through slots of a ring.
struct Slabs {
  Index strips = 0;       ///< in the block
  Index strips_each = 1;  ///< in a slab; the last may have fewer
  Index bytes_each = 0;   ///< with those up to a multiple of TileFile::block
  Index count = 0, resident = 0, slots = 0;

  /// For a block of which `memory` bytes are to be in memory. strips_asked: in a slab; 0: chosen.
  template <Scalar T>
  Slabs(const TileOrder<T>& order, Index memory, Index strips_asked = 0) : strips(order.strips()) {
    if (order.rows() == 0 || order.cols() == 0) {
      strips = 0;
      return;
    }
    // Where memory allows, a slab has the strips that all threads multiply together, and a disk delivers what
    // is long at its full rate.
    constexpr Index least = Index{1} << 18, long_enough = Index{16} << 20, strips_at_once = 16, ahead = 3;
    const Index bytes_of_strip = order.height() * order.padded_cols() * Index{sizeof(Real<T>)};
    const Index most = std::max(long_enough, threads_per_rank() * strips_at_once * bytes_of_strip);
    const Index wanted = std::max(least, std::min(most, memory / (4 * ahead)));
    strips_each = std::clamp(strips_asked > 0 ? strips_asked : wanted / bytes_of_strip, Index{1}, strips);
    bytes_each = (strips_each * bytes_of_strip + TileFile::block - 1) / TileFile::block * TileFile::block;
    count = (strips + strips_each - 1) / strips_each;
    // In one pass, the adjoint of a slab follows when its rows are summed over ranks, up to three chunks of
    // rows later (RowSum), and slabs in between stay. Then `ahead` slabs can be read meanwhile.
    const Index rows_behind = 3 * one_pass_chunk(order.cols(), Index{sizeof(T)}),
                rows_each = order.strip_rows(0).size * strips_each;
    slots = (rows_behind + rows_each - 1) / std::max<Index>(rows_each, 1) + 1 + ahead;
    const Index fit = (memory - TileFile::block) / bytes_each;
    if (fit >= count || slots >= count) {
      resident = count;
      slots = 0;
    } else {
      resident = std::max<Index>(fit - slots, 0);
    }
  }

  Range strips_of(Index slab) const {
    const Index first = slab * strips_each;
    return {first, std::min(strips_each, strips - first)};
  }
  /// How many of the slabs before this one stay in memory.
  Index residents_before(Index slab) const { return count == 0 ? 0 : slab * resident / count; }
  bool is_resident(Index slab) const { return residents_before(slab + 1) > residents_before(slab); }

  Index on_disk() const { return count - resident; }
  /// With those that align the first.
  Index bytes_in_memory() const { return (resident + slots) * bytes_each + TileFile::block; }
  Index bytes_on_disk() const { return on_disk() * bytes_each; }
};

}  // namespace gridlops
