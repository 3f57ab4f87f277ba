// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/partition.hpp"

namespace gridlops {

/// Calls take() unless it was for at least as many columns in every part before: `most` is the account of
/// that, the same on all ranks. What take() throws on one rank all throw, and nothing counts as taken then
/// (collective over comm where take() is called).
template <class Take>
void reserve_together(Communicator& comm, std::vector<Index>& most, const Partition& columns, Take&& take) {
  const auto parts = static_cast<std::size_t>(columns.parts());
  std::size_t part = 0;
  while (part < most.size() && columns.size(static_cast<int>(part)) <= most[part]) ++part;
  if (part == parts) return;
  std::vector<Index> wanted = std::move(most);
  most.clear();
  wanted.resize(parts, 0);
  succeed_together(comm, take);
  for (part = 0; part < parts; ++part)
    wanted[part] = std::max(wanted[part], columns.size(static_cast<int>(part)));
  most = std::move(wanted);
}

}  // namespace gridlops
