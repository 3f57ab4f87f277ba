// SPDX-License-Identifier: BSD-3-Clause
// The one place where Catch2 itself is compiled, if it is version 2.
#define CATCH_CONFIG_RUNNER
#include "support/run_catch.hpp"

#include "support/catch.hpp"

int gridlops::testing::run_catch(int argc, char** argv,
                                 const std::function<std::uint32_t(std::uint32_t)>& agree_on_seed) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  auto& seed = session.configData().rngSeed;
  seed = agree_on_seed(seed);
  return session.run();
}
