// SPDX-License-Identifier: BSD-3-Clause
#include "support/run_catch.hpp"

int main(int argc, char** argv) {
  return gridlops::testing::run_catch(argc, argv, [](std::uint32_t seed) { return seed; });
}
