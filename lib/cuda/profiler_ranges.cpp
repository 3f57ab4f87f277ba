// SPDX-License-Identifier: BSD-3-Clause
#include "cuda/profiler_ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include "base/trace_record.hpp"

namespace gridlops::cuda {

void tell_profilers_of_regions() {
  set_trace_listener({[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); }});
}

}  // namespace gridlops::cuda
