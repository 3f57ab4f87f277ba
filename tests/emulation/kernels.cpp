// SPDX-License-Identifier: BSD-3-Clause
// Compiles the library's kernels for the host, with the emulation's parallel.hpp.
#include "cuda/kernels/kernels.cu"
