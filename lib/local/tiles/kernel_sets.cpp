// SPDX-License-Identifier: BSD-3-Clause
#include "local/tiles/kernel_set.hpp"

// Each architecture's sets. No other source names an architecture, but for those of the sets.

namespace gridlops {

#if defined(__x86_64__)

extern const KernelSet kernels_baseline, kernels_avx2, kernels_avx512;

namespace {
std::vector<KernelSet> supported_sets() {
  std::vector<KernelSet> sets{kernels_baseline};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(kernels_avx2);
  if (__builtin_cpu_supports("avx512f")) sets.push_back(kernels_avx512);
  return sets;
}
}  // namespace

#elif defined(__aarch64__)

extern const KernelSet kernels_neon;

namespace {
std::vector<KernelSet> supported_sets() { return {kernels_neon}; }
}  // namespace

#else

extern const KernelSet kernels_baseline;

namespace {
std::vector<KernelSet> supported_sets() { return {kernels_baseline}; }
}  // namespace

#endif

const std::vector<KernelSet>& kernel_sets() {
  static const std::vector<KernelSet> sets = supported_sets();
  return sets;
}

}  // namespace gridlops
