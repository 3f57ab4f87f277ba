// SPDX-License-Identifier: BSD-3-Clause
// A first program of a user of GPUs. It is linked to the same libraries whatever was built. Where no GPU can
// be used, it prints why.
#include <gridlops/base/error.hpp>
#include <gridlops/comm/gpu.hpp>
#include <gridlops/local/backend.hpp>

#include <iostream>

int main() {
  using namespace gridlops;
  const GpuInfo info = gpu_info();
  std::cout << info.devices << " GPUs " << info.versions << ' ' << info.problem << '\n';
  try {
    make_gpu_backend(0);
    return info.devices > 0 ? 0 : 1;
  } catch (const Error& error) {
    std::cout << error.what() << '\n';
    return info.devices == 0 && !info.problem.empty() ? 0 : 1;
  }
}
