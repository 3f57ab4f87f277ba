// SPDX-License-Identifier: BSD-3-Clause
// Prints the seconds that the library's cost model predicts for a product and its adjoint:
// predict ALGORITHM ROWS COLS RHS PxQ FLOPS_PER_SECOND BYTES_PER_SECOND COPIED_BYTES_PER_SECOND
// or for those with each of many slices in c64, which ranks have whole or groups of ranks share:
// predict fredholm|grouped_slices SLICES ROWS COLS RHS RANKS FLOPS_PER_SECOND BYTES_PER_SECOND
//         READ_BYTES_PER_SECOND
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "command_line/grid.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/slice_groups.hpp"

namespace {

using namespace gridlops;

/// The seconds of the slowest group.
double seconds_of_slices(const std::vector<ProductShape>& slices, int ranks, bool are_shared,
                         const MachineModel& machine) {
  std::vector<RankGroup> groups;
  if (are_shared) {
    groups = divide_ranks(slices, ranks, machine);
  } else {
    const Partition whole = Partition::balanced(static_cast<Index>(slices.size()), ranks);
    for (int rank = 0; rank < ranks; ++rank) groups.push_back({{1, 1}, whole.size(rank)});
  }
  return std::ranges::max(group_seconds(slices, groups, machine));
}

}  // namespace

int main(int argc, char** argv) {
  const bool has_slices = argc == 10;
  if (argc != 9 && !has_slices) return 2;
  const auto inverse = [&](int k) { return 1 / std::strtod(argv[k], nullptr); };
  const auto whole = [&](int k) { return static_cast<Index>(std::strtoll(argv[k], nullptr, 10)); };
  MachineModel machine{.seconds_per_read_byte = 0, .seconds_per_copied_byte = inverse(argc - 1)};
  machine.seconds_per_flop.fill(inverse(argc - 3));
  machine.links.fill({.seconds_per_byte = inverse(argc - 2)});
  double seconds = 0;
  if (has_slices) {
    machine.seconds_per_read_byte = inverse(argc - 1);
    const std::vector<ProductShape> slices(static_cast<std::size_t>(whole(2)),
                                           {whole(3), whole(4), whole(5), ScalarType::c64});
    seconds = seconds_of_slices(slices, static_cast<int>(whole(6)), argv[1] == std::string("grouped_slices"),
                                machine);
  } else {
    seconds = modelled_seconds(program::value_of(argv[1], program::algorithms()),
                               {whole(2), whole(3), whole(4)}, parse_grid_shape(argv[5]), machine);
  }
  std::printf("%.9g\n", seconds);
}
