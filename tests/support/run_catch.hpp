// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

namespace gridlops::testing {

/// Runs the test cases as the command line says; the exit status of the program. agree_on_seed gets the seed
/// of Catch2's random numbers, and returns the one to use: ranks must take the same test cases in the same
/// order.
int run_catch(int argc, char** argv, const std::function<std::uint32_t(std::uint32_t)>& agree_on_seed);

}  // namespace gridlops::testing
