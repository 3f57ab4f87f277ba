// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/local/backend.hpp"
#include "local/host_kernels.hpp"

namespace gridlops {

/// The memory of the C library, and kernels that use CBLAS.
class HostBackend : public Backend {
 public:
  std::string name() const override { return "host"; }
  MemorySpace memory_space() const final { return MemorySpace::host; }

  void discard(void* memory, Index bytes) override;
  void upload(const void* host, void* here, Index bytes) final;
  void download(const void* here, void* host, Index bytes) final;
  void synchronize() final {}
  void for_each(Index count, double operations, const std::function<void(Index)>& work) final;

 protected:
  void* do_allocate(Index bytes) override;
  void do_release(void* memory) noexcept override;

 private:
  const Kernels<float>& kernels_f32() const final { return f32_; }
  const Kernels<double>& kernels_f64() const final { return f64_; }
  const Kernels<std::complex<float>>& kernels_c64() const final { return c64_; }
  const Kernels<std::complex<double>>& kernels_c128() const final { return c128_; }

  HostKernels<float> f32_;
  HostKernels<double> f64_;
  HostKernels<std::complex<float>> c64_;
  HostKernels<std::complex<double>> c128_;
};

}  // namespace gridlops
