// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <vector>

#include "emulation/device.hpp"

namespace emulation {

/// Queues a kernel: counts it, checks what it reads and writes, runs it when its turn comes.
cudaError_t launch(cudaStream_t stream, const char* name, const std::vector<Region>& regions,
                   std::function<void()> body);

/// The address at which the emulation can access device memory that the program knows by this address.
template <class T>
T* alias(T* address) {
  return device().memory.alias(address);
}

}  // namespace emulation
