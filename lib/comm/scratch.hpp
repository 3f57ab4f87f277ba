// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops {

/// Memory for what operators on a grid keep only while they work: a stack of arrays. So an operator and those
/// that it is made of, which work one after the other, use the same bytes. That is safe because a backend's
/// work is ordered, also with messages that have been waited for.
class ScratchStack {
 public:
  explicit ScratchStack(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  /// The bytes that an array takes, at most a sixteenth of the largest Index, which no backend has.
  template <class T>
  static Index bytes_of(Index count) {
    constexpr Index unit = 256, size = sizeof(T), most = std::numeric_limits<Index>::max() / 16 / size;
    return (std::min(count, most) * size + unit - 1) / unit * unit;
  }

  /// Makes room for arrays of so many bytes together, beside those in use. Throws OutOfMemory on this rank
  /// alone.
  void reserve(Index bytes);
  /// The next array. Without a reserve() before, it may throw OutOfMemory on this rank alone.
  std::byte* push(Index bytes);
  void pop(Index bytes);

  /// Says, while it lives, that an operator works on the grid.
  class Working {
   public:
    explicit Working(ScratchStack& scratch) : scratch_(scratch) { ++scratch_.working_; }
    ~Working() { --scratch_.working_; }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    ScratchStack& scratch_;
  };
  /// How many operators work on the grid, one within another; the same on all its ranks.
  int working() const { return working_; }

 private:
  /// Bytes [end, …) of a block are free, and so are all later blocks.
  struct Place {
    std::size_t block = 0;
    Index end = 0;
  };
  Place top() const { return places_.empty() ? Place{} : places_.back(); }
  void make_room(Index bytes);

  std::shared_ptr<Backend> backend_;
  std::vector<Buffer<std::byte>> blocks_;
  std::vector<Place> places_;           // after each array in use
  Index in_use_ = 0, most_in_use_ = 0;  // bytes
  int working_ = 0;
};

namespace detail {
ScratchStack& scratch_of(const ProcessGrid& grid);
}  // namespace detail

/// An array of the scratch memory, while it lives. Arrays end in the opposite order of their beginnings.
template <class T>
class ScratchArray {
 public:
  ScratchArray(const ProcessGrid& grid, Index count)
      : scratch_(detail::scratch_of(grid)),
        bytes_(ScratchStack::bytes_of<T>(count)),
        data_(reinterpret_cast<T*>(scratch_.push(bytes_))) {}
  ~ScratchArray() { scratch_.pop(bytes_); }
  ScratchArray(const ScratchArray&) = delete;
  ScratchArray& operator=(const ScratchArray&) = delete;

  T* data() const { return data_; }

 private:
  ScratchStack& scratch_;
  Index bytes_;
  T* data_;
};

}  // namespace gridlops
