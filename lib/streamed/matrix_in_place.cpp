// SPDX-License-Identifier: BSD-3-Clause
#include "streamed/matrix_in_place.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/instantiate.hpp"
#include "base/numbers.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

namespace {

constexpr Index round_up(Index bytes) {
  return (bytes + DiskFile::block - 1) / DiskFile::block * DiskFile::block;
}

}  // namespace

template <Scalar T>
MatrixInPlace<T>::MatrixInPlace(MatrixBoxes boxes, Range rows, Range cols, TileOrder<T> order, Slabs slabs)
    : boxes_(std::move(boxes)),
      rows_(rows),
      cols_(cols),
      order_(std::move(order)),
      slabs_(std::move(slabs)),
      file_(DiskFile::to_read(boxes_.file)) {}

template <Scalar T>
Index MatrixInPlace<T>::strips_of_piece() const {
  const Index strip = order_.height() * order_.padded_cols() * Index{sizeof(Real<T>)};
  return std::max<Index>(piece_bytes / strip, 1);
}

template <Scalar T>
Index MatrixInPlace<T>::pieces(Index slab) const {
  return (slabs_.strips_of(slab).size + strips_of_piece() - 1) / strips_of_piece();
}

template <Scalar T>
Index MatrixInPlace<T>::read(Index slab, Index piece, std::byte* memory, std::byte* staging) const {
  const Range of_slab = slabs_.strips_of(slab);
  const Range strips = intersect(of_slab, {of_slab.begin + piece * strips_of_piece(), strips_of_piece()});
  fill_edges(strips, of_slab, memory);
  const Index first = order_.strip_rows(strips.begin).begin, end = order_.strip_rows(strips.end() - 1).end();
  const Range rows{rows_.begin + first, end - first};
  Index bytes = 0;
  for (Index i = rows.begin / boxes_.rows; i * boxes_.rows < rows.end(); ++i)
    for (Index j = cols_.begin / boxes_.cols; j * boxes_.cols < cols_.end(); ++j)
      bytes += read_box(i, j, rows, of_slab, memory, staging);
  return bytes;
}

/// Reads those of the rows that are in a box: together, where all of its columns are used, or else each by
/// itself, and as many at a time as the staging has room for.
template <Scalar T>
Index MatrixInPlace<T>::read_box(Index i, Index j, Range rows, Range of_slab, std::byte* memory,
                                 std::byte* staging) const {
  constexpr Index size = sizeof(T), block = DiskFile::block;
  const Index line = boxes_.cols * size, room = slabs_.parts.staging_each - 2 * block;
  const Range in_box = intersect(rows, {i * boxes_.rows, boxes_.rows}), of_box = boxes_.cols_of(j),
              cols = intersect(cols_, of_box);
  const Index offset = boxes_.offsets[at(i * boxes_.across() + j)] +
                       ((in_box.begin - i * boxes_.rows) * boxes_.cols + cols.begin - of_box.begin) * size;
  Index bytes = 0;
  // To an aligned place, with what makes up whole blocks before and after.
  const auto read = [&](Index begin, Index count, std::byte* to) {
    const Index aligned = begin / block * block, end = begin + count;
    file_.read(to, round_up(end - aligned), aligned, end - aligned);
    bytes += round_up(end - aligned);
    return to + (begin - aligned);
  };
  if (cols.size == of_box.size && line <= room) {
    const Index most = room / line;
    for (Index row = 0; row < in_box.size; row += most) {
      const Range load{in_box.begin + row, std::min(most, in_box.size - row)};
      const std::byte* const lines =
          read(offset + row * line, (load.size - 1) * line + cols.size * size, staging);
      pack(lines, boxes_.cols, load, cols, of_slab, memory);
    }
    return bytes;
  }
  const Index width = std::min(cols.size, room / size), pitch = round_up(width * size) + block,
              most = slabs_.parts.staging_each / pitch;
  for (Index col = 0; col < cols.size; col += width) {
    const Range part{cols.begin + col, std::min(width, cols.size - col)};
    for (Index row = 0; row < in_box.size; row += most) {
      const Range load{in_box.begin + row, std::min(most, in_box.size - row)};
      for (Index k = 0; k < load.size; ++k) {
        std::byte* const to = staging + k * pitch;
        std::memmove(to, read(offset + (row + k) * line + col * size, part.size * size, to),
                     at(part.size * size));
      }
      pack(staging, pitch / size, load, part, of_slab, memory);
    }
  }
  return bytes;
}

/// Packs a part of the matrix, whose rows begin `line` elements one after the other, into tiles of a slab.
template <Scalar T>
void MatrixInPlace<T>::pack(const std::byte* from, Index line, Range rows, Range cols, Range of_slab,
                            std::byte* memory) const {
  const auto* const elements = reinterpret_cast<const T*>(from);
  const Index height = order_.height() / parts<T>, depth = order_.depth();
  for (Index strip = (rows.begin - rows_.begin) / height; rows_.begin + strip * height < rows.end();
       ++strip) {
    const Index top = rows_.begin + strip * height;
    const Range in_strip = intersect(rows, {top, height});
    for (Index col = (cols.begin - cols_.begin) / depth * depth; cols_.begin + col < cols.end();
         col += depth) {
      const Index left = cols_.begin + col;
      const Range in_tile = intersect(cols, {left, depth});
      const T* const corner = elements + (in_strip.begin - rows.begin) * line + in_tile.begin - cols.begin;
      transpose<T>({corner, in_tile.size, in_strip.size, line},
                   tile(strip, col, of_slab, memory)
                       .block({in_strip.begin - top, in_strip.size}, {in_tile.begin - left, in_tile.size}));
    }
  }
}

template <Scalar T>
MatrixView<T> MatrixInPlace<T>::tile(Index strip, Index col, Range of_slab, std::byte* memory) const {
  const Index place = order_.place(of_slab.size, strip - of_slab.begin, col) * Index{sizeof(Real<T>)};
  return {reinterpret_cast<T*>(memory + place), order_.height() / parts<T>, order_.tile_cols(col)};
}

/// Zeros beside the last column and below the last row.
template <Scalar T>
void MatrixInPlace<T>::fill_edges(Range strips, Range of_slab, std::byte* memory) const {
  const auto fill = [](MatrixView<T> zeros) {
    for (Index k = 0; k < zeros.cols; ++k) std::fill_n(zeros.column(k), zeros.rows, T(0));
  };
  const Index depth = order_.depth(), last = (order_.cols() - 1) / depth * depth;
  for (Index strip = strips.begin; strip < strips.end(); ++strip) {
    const MatrixView<T> at_edge = tile(strip, last, of_slab, memory);
    const Index used = order_.cols() - last, rows = order_.strip_rows(strip).size;
    fill(at_edge.col_block({used, at_edge.cols - used}));
    for (Index col = 0; rows < at_edge.rows && col < order_.cols(); col += depth)
      fill(tile(strip, col, of_slab, memory).row_block({rows, at_edge.rows - rows}));
  }
}

Index bytes_of_run(const MatrixBoxes& boxes, Range cols, Index rows_together, Index element_bytes) {
  const Index rows = std::min(rows_together, boxes.rows);
  Index runs = 0;
  for (Index j = cols.begin / boxes.cols; j * boxes.cols < cols.end(); ++j)
    runs += intersect(cols, boxes.cols_of(j)).size == boxes.cols_of(j).size ? 1 : rows;
  return runs == 0 ? 0 : rows * cols.size * element_bytes / runs;
}

#define GRIDLOPS_INSTANTIATE(T) template class MatrixInPlace<T>;
GRIDLOPS_FOR_EACH_SCALAR(GRIDLOPS_INSTANTIATE)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops
