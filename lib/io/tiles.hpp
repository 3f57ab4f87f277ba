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

/// Calls work(lines, along) for tiles that make up a block. A tile has at most this many elements, in line
/// segments that are as long as possible.
template <class Function>
void for_each_tile(Range lines, Range along, Index elements, Function&& work) {
  const Index length = std::min(along.size, elements);
  const Index count = elements / length;
  for (Index line = lines.begin; line < lines.end(); line += count) {
    for (Index begin = along.begin; begin < along.end(); begin += length) {
      work(intersect({line, count}, lines), intersect({begin, length}, along));
    }
  }
}

/// The number of elements in a buffer through which a block passes. At most two buffers are in use at a time.
template <Scalar T>
inline constexpr Index buffer_elements = (Index{4} << 20) / static_cast<Index>(sizeof(T));

/// A part of a range, as indices into that range.
constexpr Range relative_to(Range whole, Range part) { return {part.begin - whole.begin, part.size}; }

}  // namespace gridlops
