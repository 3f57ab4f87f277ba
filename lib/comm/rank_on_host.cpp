// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <array>
#include <vector>

#include "base/numbers.hpp"
#include "gridlops/gpu.hpp"

namespace gridlops {

int rank_on_host(Communicator& comm) {
  using Name = std::array<char, 256>;
  Name mine{};
  gethostname(mine.data(), mine.size() - 1);
  std::vector<Name> names(static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine, Elements(names.data()->data(), static_cast<Index>(names.size() * mine.size())));
  int before = 0;
  for (int rank = 0; rank < comm.rank(); ++rank)
    if (names[at(rank)] == mine) ++before;
  return before;
}

}  // namespace gridlops
