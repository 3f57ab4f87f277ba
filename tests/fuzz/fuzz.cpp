// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes one target with libFuzzer. The variable GRIDLOPS_TEST_TARGET names it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const gridlops::fuzz::Target* const chosen = [] {
    const char* const name = std::getenv("GRIDLOPS_TEST_TARGET");
    for (const gridlops::fuzz::Target& target : gridlops::fuzz::targets)
      if (name != nullptr && std::string_view(name) == target.name) return &target;
    std::fprintf(stderr, "GRIDLOPS_TEST_TARGET names no target\n");
    std::exit(2);
  }();
  chosen->check(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
