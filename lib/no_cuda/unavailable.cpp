// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/backend.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

std::shared_ptr<Backend> make_gpu_backend(int) {
  throw UsageError(
      "this library was built without GPU support, so no GPU can be used; run on the CPU (--device cpu)");
}

}  // namespace gridlops
