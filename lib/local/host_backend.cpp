// SPDX-License-Identifier: BSD-3-Clause
#include <cstdlib>
#include <cstring>
#include <limits>

#include "gridlops/backend.hpp"
#include "local/host_kernels.hpp"

namespace gridlops {
namespace {

class HostBackend final : public Backend {
 public:
  std::string name() const override { return "host"; }
  MemorySpace memory_space() const override { return MemorySpace::host; }

  void upload(const void* host, void* here, Index bytes) override { move(host, here, bytes); }
  void download(const void* here, void* host, Index bytes) override { move(here, host, bytes); }
  void synchronize() override {}

 private:
  static constexpr Index alignment = 64;  // a cache line, and the widest vector register

  static void move(const void* from, void* to, Index bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  void* do_allocate(Index bytes) override {
    if (bytes > std::numeric_limits<Index>::max() - alignment) return nullptr;
    const Index rounded = (bytes + alignment - 1) / alignment * alignment;
    return std::aligned_alloc(alignment, static_cast<std::size_t>(rounded));
  }
  void do_release(void* memory) noexcept override { std::free(memory); }

  const Kernels<float>& kernels_f32() const override { return f32_; }
  const Kernels<double>& kernels_f64() const override { return f64_; }
  const Kernels<std::complex<float>>& kernels_c64() const override { return c64_; }
  const Kernels<std::complex<double>>& kernels_c128() const override { return c128_; }

  HostKernels<float> f32_;
  HostKernels<double> f64_;
  HostKernels<std::complex<float>> c64_;
  HostKernels<std::complex<double>> c128_;
};

}  // namespace

std::shared_ptr<Backend> make_host_backend() { return std::make_shared<HostBackend>(); }

}  // namespace gridlops
