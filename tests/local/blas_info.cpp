// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <map>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/backend.hpp"
#include "local/tiles/kernel_set.hpp"
#include "support/catch.hpp"
#include "support/variable.hpp"

using namespace gridlops;
using gridlops::testing::Variable;

namespace {

/// The rest of the first line of /proc/cpuinfo that begins with this; empty if there is none.
std::string words_of_cpuinfo(const std::string& begin) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, begin.size(), begin) == 0) return line.substr(begin.size());
  return {};
}

}  // namespace

TEST_CASE("The BLAS in use is found by asking it", "[blas_info]") {
  const BlasInfo info = blas_info();
  CAPTURE(info.library, info.kernel, info.best_kernel, info.threads, info.path, info.pinned_by);
  CHECK(info.threads >= 1);
  CHECK(std::filesystem::is_regular_file(info.path));
  CHECK_FALSE(std::filesystem::is_symlink(info.path));
  CHECK(info.best_kernel == kernel_sets().back().text);
  // Only OpenBLAS tells which kernel it chose.
  CHECK(info.kernel.empty() == (info.library.find("OpenBLAS ") != 0));
}

TEST_CASE("A kernel that the environment pins is reported", "[blas_info]") {
  {
    const Variable unpinned("OPENBLAS_CORETYPE", nullptr);
    CHECK(blas_info().pinned_by.empty());
    CHECK_FALSE(blas_info().pinned_below_cpu);
  }
  const std::string kernel = blas_info().kernel;
  if (kernel.empty()) return;
  const Variable pinned("OPENBLAS_CORETYPE", kernel.c_str());
  const BlasInfo info = blas_info();
  CHECK(info.pinned_by == "OPENBLAS_CORETYPE=" + kernel);
  // OpenBLAS chose its kernel when it was loaded. Both outcomes show when this program also runs with the
  // variable set.
  const std::map<std::string, std::string> needed{
      {"SkylakeX", "AVX-512"}, {"Cooperlake", "AVX-512"}, {"SapphireRapids", "AVX-512"},
      {"Haswell", "AVX2"},     {"Zen", "AVX2"},           {"Excavator", "AVX2"}};
  const auto found = needed.find(kernel);
  CHECK(info.pinned_below_cpu ==
        ((found == needed.end() ? kernel_sets().front().text : found->second) != info.best_kernel));
}

TEST_CASE("Kernels of our own are chosen by name", "[blas_info]") {
  using Use = KernelChoice::Use;
  const std::vector<KernelSet>& sets = kernel_sets();
  for (const char* wish : {"", "auto"}) {
    CHECK(kernel_choice(wish).use == Use::where_faster);
    CHECK(kernel_choice(wish).set == &sets.back());
  }
  CHECK(kernel_choice("blas").use == Use::never);
  CHECK(kernel_choice("baseline").use == Use::wherever_possible);
  CHECK(kernel_choice("baseline").set == &sets.front());
  for (const KernelSet& set : sets) CHECK(kernel_choice(set.name).set == &set);
  const std::string flags = words_of_cpuinfo("flags");
  for (const char* wish : {"avx2", "avx512"}) {
    if (flags.find(message(" ", wish)) != std::string::npos) {
      CHECK(kernel_choice(wish).set->name == std::string(wish));
    } else {
      CHECK_THROWS_AS(kernel_choice(wish), UsageError);
    }
  }
  for (const char* wish : {"AVX2", "openblas", "1"}) CHECK_THROWS_AS(kernel_choice(wish), UsageError);
}
