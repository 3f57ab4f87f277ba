// SPDX-License-Identifier: BSD-3-Clause
// The main of the test program that needs no MPI.
#include "support/catch.hpp"

int main(int argc, char** argv) {
  return gridlops::testing::run_catch(argc, argv, [](std::uint32_t seed) { return seed; });
}
