// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/base/error.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops {

namespace {

constexpr const char* problem =
    "this library was built without GPU support; configure it with -Dgpu=enabled where the CUDA toolkit "
    "and NCCL are";

[[noreturn]] void refuse() {
  throw UsageError(std::string("no GPU can be used: ") + problem + ", or run on the CPU");
}

}  // namespace

std::shared_ptr<Backend> make_gpu_backend(int) { refuse(); }

GpuInfo gpu_info() {
  GpuInfo info;
  info.problem = problem;
  return info;
}

std::unique_ptr<Communicator> make_gpu_communicator(Communicator&, const std::shared_ptr<Backend>&,
                                                    const std::string&) {
  refuse();
}

}  // namespace gridlops
