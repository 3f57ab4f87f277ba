// SPDX-License-Identifier: BSD-3-Clause
// The library's kernels, compiled for the host, with the double's parallel.hpp.
#include "cuda/kernels.cu"
