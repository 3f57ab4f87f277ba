// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "base/message.hpp"
#include "gridlops/base/error.hpp"

namespace gridlops {

/// require() of what this rank alone can know: its block, its memory, the arguments of its own messages, what
/// callers' code gives it. A handler of the error may not believe that the other ranks throw, too. Where they
/// hear of it, by agree() or attempt(), it becomes one of all ranks.
template <class E, class... Parts>
void require_here(bool condition, const Parts&... parts) {
  if (!condition) throw E(message(parts...), KnownTo::one_rank);
}

}  // namespace gridlops
