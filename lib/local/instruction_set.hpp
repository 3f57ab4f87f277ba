// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops {

/// What kernels of our own come in; each includes those before it.
enum class InstructionSet { baseline, avx2, avx512 };

/// "baseline", "AVX2", "AVX-512".
const char* name_of(InstructionSet set);

/// Of the processor that this runs on. AVX2 stands for AVX2 with FMA.
InstructionSet best_instruction_set();

/// Whether kernels of our own take products that BLAS could take, and with which instruction set.
struct KernelChoice {
  enum class Use { where_faster, never, wherever_possible };
  Use use = Use::where_faster;
  InstructionSet set = InstructionSet::baseline;
};

/// What `wish` means here: "auto" or nothing, "blas", "baseline", "avx2" or "avx512". UsageError for another
/// word, or what this processor cannot run.
KernelChoice kernel_choice(const std::string& wish);

/// The same for the environment variable GRIDLOPS_KERNELS, which is read once.
const KernelChoice& kernel_choice();

}  // namespace gridlops
