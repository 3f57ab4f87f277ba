// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "bench/measure/results.hpp"

namespace gridlops::bench {

/// Times two ways of the same thing in turn, with operands of 1 KiB and more, and writes the lists
/// "contests", with the times, and "crossovers": from which size on, and up to which, the first way is at
/// least a tenth faster (collective).
void find_crossovers(Communicator& world, ResultWriter& writer, Index most_bytes, int repetitions);

}  // namespace gridlops::bench
