// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>

#include "gridlops/local/backend.hpp"

namespace gridlops::testing {

/// Forwards to another backend, and counts its memory and the bytes moved to and from it. Tests can make
/// allocations fail, and can give it another memory space. It fills new host memory with NaN.
class MeteredBackend final : public Backend {
 public:
  explicit MeteredBackend(std::shared_ptr<Backend> inner = make_host_backend()) : inner_(std::move(inner)) {}
  MeteredBackend(std::shared_ptr<Backend> inner, MemorySpace space)
      : inner_(std::move(inner)), space_(space) {}

  /// Makes the k-th allocation from now on fail; k = 0: none.
  void fail_at(Index k) { until_failure_ = k; }
  /// Whether it has failed, or none was to.
  bool has_failed() const { return until_failure_ == 0; }
  /// Makes allocations of longer blocks fail.
  void limit_block_bytes(Index bytes) { longest_block_ = bytes; }

  Index blocks_in_use() const { return static_cast<Index>(blocks_.size()); }
  Index bytes_in_use() const { return in_use_; }
  Index most_bytes_in_use() const { return most_in_use_; }
  void forget_most() { most_in_use_ = in_use_; }
  Index bytes_moved() const { return moved_; }

  std::string name() const override { return inner_->name(); }
  MemorySpace memory_space() const override { return space_; }
  Index launches() const override { return inner_->launches(); }
  void discard(void* memory, Index bytes) override { inner_->discard(memory, bytes); }
  void upload(const void* host, void* here, Index bytes) override {
    moved_ += bytes;
    inner_->upload(host, here, bytes);
  }
  void download(const void* here, void* host, Index bytes) override {
    moved_ += bytes;
    inner_->download(here, host, bytes);
  }
  void synchronize() override { inner_->synchronize(); }
  const SharedMemory* shared_memory() const override { return inner_->shared_memory(); }

 private:
  void* do_allocate(Index bytes) override {
    if (until_failure_ > 0 && --until_failure_ == 0) return nullptr;
    if (bytes > longest_block_) return nullptr;
    void* const memory = inner_->allocate(bytes);
    if (memory != nullptr && inner_->memory_space() == MemorySpace::host)
      std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
    blocks_[memory] = bytes;
    in_use_ += bytes;
    most_in_use_ = std::max(most_in_use_, in_use_);
    return memory;
  }
  void do_release(void* memory) noexcept override {
    const auto block = blocks_.find(memory);
    in_use_ -= block->second;
    blocks_.erase(block);
    inner_->release(memory);
  }
  const Kernels<float>& kernels_f32() const override { return inner_->kernels<float>(); }
  const Kernels<double>& kernels_f64() const override { return inner_->kernels<double>(); }
  const Kernels<std::complex<float>>& kernels_c64() const override {
    return inner_->kernels<std::complex<float>>();
  }
  const Kernels<std::complex<double>>& kernels_c128() const override {
    return inner_->kernels<std::complex<double>>();
  }

  std::shared_ptr<Backend> inner_;
  MemorySpace space_ = inner_->memory_space();
  std::map<void*, Index> blocks_;
  Index until_failure_ = 0, longest_block_ = std::numeric_limits<Index>::max();
  Index in_use_ = 0, most_in_use_ = 0, moved_ = 0;
};

}  // namespace gridlops::testing
