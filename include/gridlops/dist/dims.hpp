// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/dist/partition.hpp"

namespace gridlops {

/// A box of an array: one range of indices for each of its dimensions.
using Box = std::vector<Range>;

/// size_of: the number of elements of a box. intersect: the box of the elements that lie in both; it may be
/// empty.
GRIDLOPS_EXPORT Index size_of(const Box& box);
GRIDLOPS_EXPORT Box intersect(const Box& a, const Box& b);

/// The dimensions of an array whose elements are the rows of a matrix, the first dimension slowest (C order),
/// and the cuts of each dimension. The blocks between the cuts are numbered in C order, too; the ranks that
/// hold part p of the rows hold block p. Within a block elements are in C order. So the rows are ordered
/// block by block, and follow the array's own order only if no dimension but the slowest is cut. A value.
///
///   Dims::cut_along({4, 6}, 0, 2)     0 … 11 of the array | 12 … 23
///   Dims::cut_along({4, 6}, 1, 2)     0 1 2 6 7 8 12 13 14 18 19 20 | 3 4 5 9 10 11 15 16 17 21 22 23
/// Reasons: docs/decisions/0022-arrays.md.
class GRIDLOPS_EXPORT Dims {
 public:
  static constexpr int most = 5;

  /// No dimensions: one element.
  Dims() = default;
  /// The dimensions, each with its cuts. Throws ShapeError if there are more than `most`.
  explicit Dims(std::vector<Partition> cuts);
  /// Cuts dimension `cut` into this many balanced parts, and leaves the others whole. Throws ShapeError if
  /// there is no such dimension, or if a size is negative.
  static Dims cut_along(const std::vector<Index>& sizes, int cut, int parts);

  int count() const { return static_cast<int>(cuts_.size()); }
  Index size(int dim) const { return cut(dim).total(); }
  std::vector<Index> sizes() const;
  const Partition& cut(int dim) const { return cuts_[static_cast<std::size_t>(dim)]; }
  const std::vector<Partition>& cuts() const { return cuts_; }
  Index elements() const { return size_of(whole()); }

  /// The number of blocks, and the box of each.
  int blocks() const;
  Box block(int number) const;
  Box whole() const;

  /// How the elements, ordered block by block, are cut into blocks.
  Partition rows() const;
  /// Whether both order their elements alike, even if their dimensions differ.
  bool ordered_as(const Dims& other) const;

  /// "4 x 6 (cut in 2 along dimension 1)"
  std::string describe() const;

  friend bool operator==(const Dims&, const Dims&) = default;

 private:
  std::vector<Partition> order() const;

  std::vector<Partition> cuts_;
};

}  // namespace gridlops
