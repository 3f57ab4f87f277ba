// SPDX-License-Identifier: BSD-3-Clause
#include "solve/run/active_columns.hpp"

#include <algorithm>
#include <numeric>

#include "base/numbers.hpp"

namespace gridlops {

ActiveColumns::ActiveColumns(Partition columns) : columns_(std::move(columns)), active_(columns_) {
  order_.resize(at(columns_.parts()));
  for (int part = 0; part < columns_.parts(); ++part) {
    order_[at(part)].resize(at(columns_.size(part)));
    std::iota(order_[at(part)].begin(), order_[at(part)].end(), Index{0});
  }
}

Index ActiveColumns::column(Index k) const {
  const int part = active_.owner_of(k);
  return columns_.begin(part) + order_[at(part)][at(k - active_.begin(part))];
}

void ActiveColumns::exchange(int part, Index i, Index j, int swaps_of, Swaps& swaps) {
  if (i == j) return;
  std::swap(order_[at(part)][at(i)], order_[at(part)][at(j)]);
  if (part == swaps_of) swaps.emplace_back(i, j);
}

ActiveColumns::Swaps ActiveColumns::deflate(const std::vector<char>& leaves, int part) {
  Swaps swaps;
  std::vector<Index> sizes;
  for (int of = 0; of < columns_.parts(); ++of) {
    Index remaining = active_.size(of);
    for (Index position = remaining - 1; position >= 0; --position)
      if (leaves[at(active_.begin(of) + position)] != 0) exchange(of, position, --remaining, part, swaps);
    sizes.push_back(remaining);
  }
  active_ = Partition::with_sizes(sizes);
  return swaps;
}

ActiveColumns::Swaps ActiveColumns::activate(const std::vector<char>& active, int part) {
  std::vector<char> leaves;
  for (Index column = 0; column < columns_.total(); ++column)
    leaves.push_back(active[at(column)] == 0 ? 1 : 0);
  return deflate(leaves, part);
}

ActiveColumns::Swaps ActiveColumns::restore(int part) {
  Swaps swaps;
  for (int of = 0; of < columns_.parts(); ++of)
    for (Index position = 0; position < columns_.size(of); ++position)
      while (order_[at(of)][at(position)] != position)
        exchange(of, position, order_[at(of)][at(position)], part, swaps);
  active_ = columns_;
  return swaps;
}

ActiveColumns::Swaps ActiveColumns::arrange_as(const ActiveColumns& other, int part) {
  Swaps swaps;
  for (int of = 0; of < columns_.parts(); ++of) {
    std::vector<Index>& here = order_[at(of)];
    const std::vector<Index>& there = other.order_[at(of)];
    for (std::size_t position = 0; position < here.size(); ++position) {
      const auto found = std::find(here.begin(), here.end(), there[position]);
      exchange(of, static_cast<Index>(position), found - here.begin(), part, swaps);
    }
  }
  active_ = other.active_;
  return swaps;
}

bool ActiveColumns::has_active(std::vector<char> chosen) const {
  for (Index k = 0; k < count(); ++k) chosen[at(column(k))] = 0;
  return std::find(chosen.begin(), chosen.end(), 1) == chosen.end();
}

void ActiveColumns::visit(StateArchive& archive) {
  const Index all = columns_.total();
  for (Partition* partition : {&columns_, &active_}) {
    std::vector<Index> sizes;
    for (int part = 0; part < partition->parts(); ++part) sizes.push_back(partition->size(part));
    Index rest = all;
    archive.visit_list(sizes, [&](Index& size) {
      archive.visit_count(size, rest);
      rest -= size;
    });
    archive.require(!sizes.empty());
    if (archive.loading()) *partition = Partition::with_sizes(sizes);
  }
  archive.require(columns_.total() == all && active_.parts() == columns_.parts());
  order_.resize(at(columns_.parts()));
  for (int part = 0; part < columns_.parts(); ++part) {
    const Index size = columns_.size(part);
    archive.require(active_.size(part) <= size);
    std::vector<Index>& order = order_[at(part)];
    order.resize(at(size));
    std::vector<char> seen(at(size), 0);
    archive.visit_all(order);
    for (const Index place : order) {
      archive.require(0 <= place && place < size && seen[at(place)] == 0);
      seen[at(place)] = 1;
    }
  }
}

}  // namespace gridlops
