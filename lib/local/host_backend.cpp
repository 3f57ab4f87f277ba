// SPDX-License-Identifier: BSD-3-Clause
#include <sys/mman.h>

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
  static constexpr Index large_page = 2 << 20;

  static void move(const void* from, void* to, Index bytes) {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

  void* do_allocate(Index bytes) override {
    // Large pages make reading a matrix a tenth faster: fewer addresses to look up, and prefetchers, which
    // stop at the end of a page, stop less often.
    const bool is_large = bytes >= 2 * large_page;
    const Index unit = is_large ? large_page : alignment;
    if (bytes > std::numeric_limits<Index>::max() - unit) return nullptr;
    const auto rounded = static_cast<std::size_t>((bytes + unit - 1) / unit * unit);
    void* const memory = std::aligned_alloc(static_cast<std::size_t>(unit), rounded);
#if defined(MADV_HUGEPAGE)
    // Advice: where it is not taken, pages are small.
    if (is_large && memory != nullptr) static_cast<void>(madvise(memory, rounded, MADV_HUGEPAGE));
#endif
    return memory;
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
