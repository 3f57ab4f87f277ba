// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// find_arrivals() for an instruction set, see FindArrivals. Isa is a type local to the source compiled for
/// it, so that the linker keeps its code apart; compilers make vectors of the loop.
template <class Isa, class R>
struct ArrivalLoops {
  static void find(Index count, const R* from_source, const R* to_receiver, R end, std::int32_t* sample,
                   R* behind) {
    for (Index i = 0; i < count; ++i) {
      const R time = from_source[i] + to_receiver[i], kept = time < end ? time : end;
      sample[i] = static_cast<std::int32_t>(kept);
      behind[i] = kept - static_cast<R>(sample[i]);
    }
  }
};

}  // namespace gridlops
