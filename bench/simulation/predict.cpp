// SPDX-License-Identifier: BSD-3-Clause
// Prints the seconds that the library's cost model predicts for a product and its adjoint:
// predict ALGORITHM ROWS COLS RHS PxQ FLOPS_PER_SECOND BYTES_PER_SECOND COPIED_BYTES_PER_SECOND
#include <cstdio>
#include <cstdlib>

#include "command_line/grid.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/ops/cost_model.hpp"

int main(int argc, char** argv) {
  using namespace gridlops;
  if (argc != 9) return 2;
  const auto inverse = [&](int k) { return 1 / std::strtod(argv[k], nullptr); };
  const auto whole = [&](int k) { return static_cast<Index>(std::strtoll(argv[k], nullptr, 10)); };
  MachineModel machine{.seconds_per_read_byte = 0, .seconds_per_copied_byte = inverse(8)};
  machine.seconds_per_flop.fill(inverse(6));
  machine.links.fill({.seconds_per_byte = inverse(7)});
  std::printf("%.9g\n", modelled_seconds(program::value_of(argv[1], program::algorithms()),
                                         {whole(2), whole(3), whole(4)}, parse_grid_shape(argv[5]), machine));
}
