// SPDX-License-Identifier: BSD-3-Clause
// Compiles Catch2 itself, if it is version 2, once for all test programs.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"

int gridlops::testing::run_catch(int argc, char** argv,
                                 const std::function<std::uint32_t(std::uint32_t)>& agree_on_seed) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  auto& seed = session.configData().rngSeed;
  seed = agree_on_seed(seed);
  return session.run();
}
