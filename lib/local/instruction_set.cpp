// SPDX-License-Identifier: BSD-3-Clause
#include "local/instruction_set.hpp"

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

}  // namespace gridlops
