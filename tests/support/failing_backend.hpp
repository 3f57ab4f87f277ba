// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <complex>
#include <memory>
#include <string>

#include "support/mpi_main.hpp"

namespace gridlops::testing {

/// A backend of the kind that the tests run on, which can be told to have no memory left once.
class FailingBackend final : public Backend {
 public:
  /// The k-th allocation from now on fails; k = 0: none.
  void fail_at(Index k) { until_failure_ = k; }

  std::string name() const override { return inner_->name(); }
  MemorySpace memory_space() const override { return inner_->memory_space(); }
  void discard(void* memory, Index bytes) override { inner_->discard(memory, bytes); }
  void upload(const void* host, void* here, Index bytes) override { inner_->upload(host, here, bytes); }
  void download(const void* here, void* host, Index bytes) override { inner_->download(here, host, bytes); }
  void synchronize() override { inner_->synchronize(); }
  bool shares_memory() const override { return inner_->shares_memory(); }
  SharedPlace shared_place(const void* memory) const override { return inner_->shared_place(memory); }

 private:
  void* do_allocate(Index bytes) override {
    if (until_failure_ > 0 && --until_failure_ == 0) return nullptr;
    return inner_->allocate(bytes);
  }
  void do_release(void* memory) noexcept override { inner_->release(memory); }
  const Kernels<float>& kernels_f32() const override { return inner_->kernels<float>(); }
  const Kernels<double>& kernels_f64() const override { return inner_->kernels<double>(); }
  const Kernels<std::complex<float>>& kernels_c64() const override {
    return inner_->kernels<std::complex<float>>();
  }
  const Kernels<std::complex<double>>& kernels_c128() const override {
    return inner_->kernels<std::complex<double>>();
  }

  std::shared_ptr<Backend> inner_ = make_backend();
  Index until_failure_ = 0;
};

}  // namespace gridlops::testing
