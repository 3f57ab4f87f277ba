// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/dist/dims.hpp"

#include <algorithm>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

Index size_of(const Box& box) {
  Index size = 1;
  for (const Range& range : box) size *= range.size;
  return size;
}

Box intersect(const Box& a, const Box& b) {
  Box both;
  for (std::size_t d = 0; d < a.size(); ++d) both.push_back(intersect(a[d], b[d]));
  return both;
}

Dims::Dims(std::vector<Partition> cuts) : cuts_(std::move(cuts)) {
  require<ShapeError>(count() <= most, "an array has ", count(), " dimensions; at most ", most,
                      " are possible. Merge dimensions that are not cut");
  Index elements = 1;
  for (const Partition& cut : cuts_)
    require<ShapeError>(!__builtin_mul_overflow(elements, std::max<Index>(cut.total(), 1), &elements) &&
                            elements <= Index{1} << 56,
                        "an array of ", describe(), " has more elements than any machine can hold");
}

Dims Dims::cut_along(const std::vector<Index>& sizes, int cut, int parts) {
  const int count = static_cast<int>(sizes.size());
  require<ShapeError>(0 <= cut && cut < count, "an array of ", count,
                      " dimensions cannot be cut along number ", cut, "; they are numbered from 0");
  std::vector<Partition> cuts;
  for (int d = 0; d < count; ++d) {
    require<ShapeError>(sizes[at(d)] >= 0, "dimension ", d, " of an array has the negative size ",
                        sizes[at(d)]);
    cuts.push_back(Partition::balanced(sizes[at(d)], d == cut ? parts : 1));
  }
  return Dims(std::move(cuts));
}

std::vector<Index> Dims::sizes() const {
  std::vector<Index> sizes;
  for (const Partition& cut : cuts_) sizes.push_back(cut.total());
  return sizes;
}

int Dims::blocks() const {
  int blocks = 1;
  for (const Partition& cut : cuts_) blocks *= cut.parts();
  return blocks;
}

Box Dims::block(int number) const {
  Box box(cuts_.size());
  for (std::size_t d = cuts_.size(); d-- > 0;) {
    box[d] = cuts_[d].range(number % cuts_[d].parts());
    number /= cuts_[d].parts();
  }
  return box;
}

Box Dims::whole() const {
  Box box;
  for (const Partition& cut : cuts_) box.push_back({0, cut.total()});
  return box;
}

Partition Dims::rows() const {
  std::vector<Index> sizes;
  for (int number = 0; number < blocks(); ++number) sizes.push_back(size_of(block(number)));
  return Partition::with_sizes(sizes);
}

/// The dimensions that determine the order. Consecutive whole dimensions count as one. Dimensions of one
/// element do not count, nor does one that only determines the length of the array.
std::vector<Partition> Dims::order() const {
  std::vector<Partition> order;
  bool ends_whole = false;
  for (const Partition& cut : cuts_) {
    const bool is_whole = cut.parts() == 1;
    if (is_whole && cut.total() == 1) continue;
    if (is_whole && ends_whole) {
      order.back() = Partition::balanced(order.back().total() * cut.total(), 1);
    } else {
      order.push_back(cut);
    }
    ends_whole = is_whole;
  }
  // Blocks of whole slices of the slowest dimension follow the order of the array.
  const bool slowest_alone = order.size() <= 1 || (order.size() == 2 && order[0].parts() > 1 && ends_whole);
  return slowest_alone ? std::vector<Partition>{} : order;
}

bool Dims::ordered_as(const Dims& other) const { return order() == other.order(); }

std::string Dims::describe() const {
  std::string text, cut_text;
  for (int d = 0; d < count(); ++d) {
    text += message(d == 0 ? "" : " x ", size(d));
    if (cut(d).parts() > 1)
      cut_text += message(cut_text.empty() ? " (" : ", ", "cut in ", cut(d).parts(), " along dimension ", d);
  }
  return text + (cut_text.empty() ? "" : cut_text + ")");
}

}  // namespace gridlops
