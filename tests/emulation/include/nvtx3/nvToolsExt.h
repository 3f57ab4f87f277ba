// SPDX-License-Identifier: BSD-3-Clause
// Declares what lib/cuda calls of NVTX, for machines without the toolkit. It is source compatible with the
// toolkit, not binary compatible.
#pragma once

extern "C" {
int nvtxRangePushA(const char* message);
int nvtxRangePop();
}
