// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace gridlops::cuda {

/// From now on the regions of traces are ranges of NVTX, which profilers such as Nsight Systems show.
void tell_profilers_of_regions();

}  // namespace gridlops::cuda
