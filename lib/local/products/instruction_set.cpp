// SPDX-License-Identifier: BSD-3-Clause
#include "local/products/instruction_set.hpp"

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/message.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

const char* name_of(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
      return "AVX-512";
    case InstructionSet::avx2:
      return "AVX2";
    case InstructionSet::baseline:
      break;
  }
  return "baseline";
}

InstructionSet best_instruction_set() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return InstructionSet::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

KernelChoice kernel_choice(const std::string& name) {
  using Use = KernelChoice::Use;
  const InstructionSet best = best_instruction_set();
  if (name.empty() || name == "auto") return {Use::where_faster, best};
  if (name == "blas") return {Use::never, best};
  require<UsageError>(name == "baseline" || name == "avx2" || name == "avx512", "GRIDLOPS_KERNELS is \"",
                      name, "\", which names no kernels; set it to auto, blas, baseline, avx2 or avx512");
  const InstructionSet set = name == "baseline" ? InstructionSet::baseline
                             : name == "avx2"   ? InstructionSet::avx2
                                                : InstructionSet::avx512;
  require<UsageError>(set <= best, "GRIDLOPS_KERNELS asks for ", name_of(set), ", but this processor has ",
                      name_of(best), " only; unset it, or ask for less");
  return {Use::wherever_possible, set};
}

const KernelChoice& kernel_choice() {
  static const KernelChoice choice = [] {
    const char* const name = std::getenv("GRIDLOPS_KERNELS");
    return kernel_choice(name == nullptr ? "" : name);
  }();
  return choice;
}

std::string own_kernels() {
  const KernelChoice& choice = kernel_choice();
  if (choice.use == KernelChoice::Use::never) return "none, as GRIDLOPS_KERNELS asks for BLAS";
  const std::string set = name_of(choice.set);
  if (choice.use == KernelChoice::Use::wherever_possible)
    return set + ", as GRIDLOPS_KERNELS asks, in all products";
  if (choice.set == InstructionSet::baseline) return "none, as they need AVX2";
  return set + ", in products with few columns";
}

std::string cpu_model() {
  std::map<std::string, std::string> values;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::size_t tab = line.find('\t'), colon = line.find(": ");
    if (tab < colon && colon != std::string::npos) values[line.substr(0, tab)] = line.substr(colon + 2);
  }
  std::string text;
  for (const char* name : {"model name", "cpu family", "model", "stepping"})
    if (!values[name].empty()) text += (text.empty() ? "" : message(", ", name, " ")) + values[name];
  return text.empty() ? "unknown" : text;
}

}  // namespace gridlops
