// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops {

/// The instruction sets for which this library has kernels. Each includes those before it.
enum class InstructionSet { baseline, avx2, avx512 };

/// "baseline", "AVX2", "AVX-512".
const char* name_of(InstructionSet set);

/// The best instruction set of this processor. AVX2 means AVX2 with FMA.
InstructionSet best_instruction_set();

/// Whether this library's kernels replace BLAS in products, and with which instruction set.
struct KernelChoice {
  enum class Use { where_faster, never, wherever_possible };
  Use use = Use::where_faster;
  InstructionSet set = InstructionSet::baseline;
};

/// The choice for a name: "auto" or nothing, "blas", "baseline", "avx2" or "avx512". Throws UsageError for
/// another name, or for a set that this processor lacks.
KernelChoice kernel_choice(const std::string& name);

/// The choice that the environment variable GRIDLOPS_KERNELS names, read once.
const KernelChoice& kernel_choice();

}  // namespace gridlops
