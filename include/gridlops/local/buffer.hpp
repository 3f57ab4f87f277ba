// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "gridlops/local/backend.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// An array in the memory of a Backend, which it keeps alive. Owns the array. Move-only.
template <class T>
class Buffer {
 public:
  Buffer() = default;

  /// Allocates count elements, uninitialised. Throws OutOfMemory on this rank alone.
  Buffer(std::shared_ptr<Backend> backend, Index count)
      : backend_(std::move(backend)),
        data_(static_cast<T*>(backend_->allocate(bytes_of(count)))),
        size_(count) {}

  Buffer(Buffer&& other) noexcept
      : backend_(std::move(other.backend_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer moved(std::move(other));
    std::swap(backend_, moved.backend_);
    std::swap(data_, moved.data_);
    std::swap(size_, moved.size_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) backend_->release(data_);
  }

  T* data() const { return data_; }
  Index size() const { return size_; }
  std::span<T> span() const { return {data_, static_cast<std::size_t>(size_)}; }
  /// The first rows·cols elements as a block without gaps.
  MatrixView<T> matrix(Index rows, Index cols) const { return {data_, rows, cols}; }

  /// Makes room for count elements. If there is less, allocates anew and loses the contents. Throws
  /// OutOfMemory on this rank alone.
  void reserve(const std::shared_ptr<Backend>& backend, Index count) {
    if (count > size_) {
      *this = Buffer();
      *this = Buffer(backend, count);
    }
  }

 private:
  /// Saturates, so that allocate() refuses element counts whose bytes exceed an Index.
  static Index bytes_of(Index count) {
    constexpr Index size = sizeof(T);
    constexpr Index most = std::numeric_limits<Index>::max() / size;
    return std::clamp(count, -most, most) * size;
  }

  std::shared_ptr<Backend> backend_;
  T* data_ = nullptr;
  Index size_ = 0;
};

}  // namespace gridlops
