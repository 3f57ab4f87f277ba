// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "io/matrix_boxes.hpp"
#include "local/tiles/tile_order.hpp"
#include "streamed/disk/part_source.hpp"
#include "streamed/slabs.hpp"

namespace gridlops {

/// A block of a matrix in a user's file, whose elements are of T, as slabs of tiles: each time, threads read
/// rows of the file and pack them.
template <Scalar T>
class MatrixInPlace final : public PartSource {
 public:
  /// For the block of these rows and columns of the matrix. Throws InputError if the file cannot be opened.
  MatrixInPlace(MatrixBoxes boxes, Range rows, Range cols, TileOrder<T> order, Slabs slabs);

  const std::string& place() const override { return file_.place(); }
  Index bytes(Index slab) const override { return slabs_.parts.bytes[at(slab)]; }
  Index pieces(Index slab) const override;
  Index read(Index slab, Index piece, std::byte* memory, std::byte* staging) const override;

 private:
  Index strips_of_piece() const;
  Index read_box(Index i, Index j, Range rows, Range of_slab, std::byte* memory, std::byte* staging) const;
  void pack(const std::byte* from, Index line, Range rows, Range cols, Range of_slab,
            std::byte* memory) const;
  void fill_edges(Range strips, Range of_slab, std::byte* memory) const;
  MatrixView<T> tile(Index strip, Index col, Range of_slab, std::byte* memory) const;

  MatrixBoxes boxes_;
  Range rows_, cols_;
  TileOrder<T> order_;
  Slabs slabs_;
  DiskFile file_;
};

/// Returns the average length of the contiguous runs of these columns in the file, in bytes, if this many
/// rows are read at a time.
Index bytes_of_run(const MatrixBoxes& boxes, Range cols, Index rows_together, Index element_bytes);

}  // namespace gridlops
