// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/local/backend.hpp"
#include "local/tiles/tile_order.hpp"
#include "ops/panels/panels.hpp"
#include "streamed/disk/part_plan.hpp"

namespace gridlops {

/// How a block in tiles is cut into slabs, its parts: some strips each, of all columns.
struct Slabs {
  Index strips = 0;       ///< in the block
  Index strips_each = 1;  ///< in a slab; the last may have fewer
  Index together = 1;     ///< slabs that a product uses at a time, at most
  PartPlan parts{};

  /// For a block of which `memory` bytes are to be in memory. strips_asked: in a slab; 0: chosen. in_place:
  /// it is read from a file of a user's, whose order is another.
  template <Scalar T>
  Slabs(const TileOrder<T>& order, Index memory, Index strips_asked = 0, bool in_place = false)
      : strips(order.strips()) {
    if (order.rows() == 0 || order.cols() == 0) {
      strips = 0;
      return;
    }
    const Index bytes_of_strip = order.height() * order.padded_cols() * Index{sizeof(Real<T>)};
    const Index wanted =
        PartPlan::good_bytes(threads_per_rank() * order.strips_at_once() * bytes_of_strip, memory);
    strips_each = std::clamp(strips_asked > 0 ? strips_asked : wanted / bytes_of_strip, Index{1}, strips);
    const Index count = (strips + strips_each - 1) / strips_each;
    if (strips_asked == 0) strips_each = (strips + count - 1) / count;
    const Index block = DiskFile::block,
                bytes_each = (strips_each * bytes_of_strip + block - 1) / block * block;
    // In one pass, the adjoint of a slab follows when its rows are summed over ranks, up to three chunks of
    // rows later (RowSum), and slabs in between stay. Then `ahead` slabs can be read meanwhile.
    const Index rows_behind = 3 * one_pass_chunk(order.cols(), Index{sizeof(T)}),
                rows_each = order.strip_rows(0).size * strips_each;
    const Index behind = (rows_behind + rows_each - 1) / std::max<Index>(rows_each, 1);
    together = std::min(behind + 1, count);
    // The bytes of a piece may begin and end within a block of the file.
    const Index staging = in_place ? std::min(PartSource::piece_bytes, bytes_each) + 2 * block : 0;
    parts = PartPlan(std::vector<Index>(at(count), bytes_each), together + PartPlan::ahead, memory, staging);
  }

  Index count() const { return parts.count(); }
  /// With those up to a multiple of DiskFile::block.
  Index bytes_each() const { return parts.bytes.front(); }
  Range strips_of(Index slab) const {
    const Index first = slab * strips_each;
    return {first, std::min(strips_each, strips - first)};
  }
};

}  // namespace gridlops
