// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

namespace gridlops::testing {

/// What this process has made by calls of MPI, and not freed yet. Leaks of MPI's own handles are invisible to
/// the sanitizers, whose rules leave out what MPI allocates.
struct OpenHandles {
  int communicators = 0, windows = 0, types = 0;
  friend bool operator==(const OpenHandles&, const OpenHandles&) = default;
};

OpenHandles open_handles();
/// "1 communicator, 0 windows, 2 types" more or fewer than before; empty if there are as many.
std::string difference(const OpenHandles& before, const OpenHandles& now);

}  // namespace gridlops::testing
