// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "gridlops/base/types.hpp"

namespace gridlops {

// An array file is a sequence of lines of equal length: the columns of its matrix, or the rows. A block
// consists of the elements `along` of the lines `lines`; neither range is empty.

/// Calls work(in_file, in_memory, count), all in elements, for every part of a block that is contiguous both
/// in the file and in memory. In memory, line k starts at k·stride.
template <class Function>
void for_each_run(Index line_length, Range lines, Range along, Index stride, Function&& work) {
  if (along.size == line_length && stride == line_length) {
    return work(lines.begin * line_length, Index{0}, lines.size * line_length);
  }
  for (Index k = 0; k < lines.size; ++k) {
    work((lines.begin + k) * line_length + along.begin, k * stride, along.size);
  }
}

/// A dimension in cells of equal size, one of which begins at index `offset`.
struct Cells {
  Index size = 1, offset = 0;

  /// Where the cell of this index begins.
  constexpr Index begin_of(Index index) const {
    const Index into = (index - offset) % size;
    return index - (into < 0 ? into + size : into);
  }
};

/// The end of a piece of a range that begins at an index: as many whole cells as fit into `most` elements,
/// but at least one.
constexpr Index end_of_piece(Range range, Index begin, Index most, const Cells& cells) {
  if (most >= range.end() - begin) return range.end();
  const Index whole = cells.begin_of(begin + most);
  return std::min(range.end(), whole > begin ? whole : cells.begin_of(begin) + cells.size);
}

/// Calls work(lines, along) for tiles that make up a block. A tile has at most this many elements, in line
/// segments that are as long as possible. A tile of a file in chunks has whole chunks, at least one, as far
/// as the block has them, so that each chunk is read once.
template <class Function>
void for_each_tile(Range lines, Range along, Index elements, Function&& work, const Cells& line_cells = {},
                   const Cells& along_cells = {}) {
  for (Index line = lines.begin; line < lines.end();) {
    const Index last = end_of_piece(lines, line, elements / along.size, line_cells);
    for (Index begin = along.begin; begin < along.end();) {
      const Index end = end_of_piece(along, begin, elements / (last - line), along_cells);
      work(Range{line, last - line}, Range{begin, end - begin});
      begin = end;
    }
    line = last;
  }
}

/// The number of elements in a buffer through which a block passes. At most two buffers are in use at a time.
template <Scalar T>
inline constexpr Index buffer_elements = (Index{4} << 20) / static_cast<Index>(sizeof(T));

/// A part of a range, as indices into that range.
constexpr Range relative_to(Range whole, Range part) { return {part.begin - whole.begin, part.size}; }

/// The columns of this rank's block in a file, where X begins at column `first`.
template <class Matrix>
Range cols_in_file(const Matrix& X, Index first) {
  return {first + X.local_col_range().begin, X.local_col_range().size};
}

}  // namespace gridlops
