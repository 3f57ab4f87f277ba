// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/error.hpp"

namespace gridlops {

/// Ends all processes of the job with this status, from any of them alone.
[[noreturn]] void end_job(ExitStatus status) noexcept;

}  // namespace gridlops
