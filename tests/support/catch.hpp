// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Catch2 has one header in version 2, and several in version 3.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // version 2 has it in this namespace
#else
#include <catch2/catch.hpp>
#endif

namespace gridlops::testing {

/// Runs the test cases that the command line asks for, and returns the program's exit status. All ranks must
/// run the same test cases in the same order: agree_on_seed gets this rank's seed of Catch2's random numbers,
/// and returns the common one.
int run_catch(int argc, char** argv, const std::function<std::uint32_t(std::uint32_t)>& agree_on_seed);

/// The message of the E that action() throws; empty if it throws none.
template <class E, class Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace gridlops::testing
