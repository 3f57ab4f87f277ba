// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gridlops {

/// What kernels of our own come in; each includes those before it.
enum class InstructionSet { baseline, avx2, avx512 };

/// "baseline", "AVX2", "AVX-512".
const char* name_of(InstructionSet set);

/// Of the processor that this runs on. AVX2 stands for AVX2 with FMA.
InstructionSet best_instruction_set();

}  // namespace gridlops
