// SPDX-License-Identifier: BSD-3-Clause
// Compiles Catch2 itself, if it is version 2, once for all test programs.
#define CATCH_CONFIG_RUNNER
#include <cstdlib>
#include <string>

#include "local/threads.hpp"
#include "support/catch.hpp"

namespace {

/// With GRIDLOPS_TEST_THREADS each rank has that many threads, and every loop that can uses them.
void use_threads() {
  const char* const threads = std::getenv("GRIDLOPS_TEST_THREADS");
  if (threads == nullptr) return;
  gridlops::choose_threads(std::stoi(threads));
  gridlops::operations_worth_a_thread = 1e-3;
}

}  // namespace

int gridlops::testing::run_catch(int argc, char** argv,
                                 const std::function<std::uint32_t(std::uint32_t)>& agree_on_seed) {
  Catch::Session session;
  if (const int wrong = session.applyCommandLine(argc, argv); wrong != 0) return wrong;
  auto& seed = session.configData().rngSeed;
  seed = agree_on_seed(seed);
  use_threads();
  return session.run();
}
