// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "cuda/device_context.hpp"
#include "cuda/kernels/gpu_kernels.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::cuda {

/// The memory and the kernels of one GPU. All work, and every use of memory, follows the order of the compute
/// stream.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(int device);
  ~CudaBackend() override;

  std::string name() const override { return name_; }
  MemorySpace memory_space() const override { return MemorySpace::device; }
  Index launches() const override { return environment_.launches; }

  void upload(const void* host, void* here, Index bytes) override;
  void download(const void* here, void* host, Index bytes) override;
  void synchronize() override { context_->synchronize(); }
  void* native_queue() const override { return context_->compute(); }

  /// Shared with communicators, which may outlive the backend.
  const std::shared_ptr<DeviceContext>& context() const { return context_; }

 private:
  void* do_allocate(Index bytes) override;
  void do_release(void* memory) noexcept override;

  const Kernels<float>& kernels_f32() const override { return f32_; }
  const Kernels<double>& kernels_f64() const override { return f64_; }
  const Kernels<std::complex<float>>& kernels_c64() const override { return c64_; }
  const Kernels<std::complex<double>>& kernels_c128() const override { return c128_; }

  std::string name_;
  std::shared_ptr<DeviceContext> context_;
  KernelEnvironment environment_;
  CudaKernels<float> f32_{environment_};
  CudaKernels<double> f64_{environment_};
  CudaKernels<std::complex<float>> c64_{environment_};
  CudaKernels<std::complex<double>> c128_{environment_};
};

}  // namespace gridlops::cuda
