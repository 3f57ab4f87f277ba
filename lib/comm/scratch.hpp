// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <memory>
#include <typeindex>
#include <utility>

#include "gridlops/comm/process_grid.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops {

/// Memory for what operators on a grid keep only while they work: a stack of arrays. An operator and those
/// that it is made of work one after the other, and so use the same bytes. That is safe because a backend's
/// work is ordered, also with messages that have been waited for.
///
/// The outermost operator makes room for all of them, in an agreement of the ranks. Callers' code may apply
/// any operators, so those have an inner stack.
/// Reasons: docs/decisions/0057-scratch-memory.md.
class ScratchStack {
 public:
  explicit ScratchStack(std::shared_ptr<Backend> backend)
      : ScratchStack(std::move(backend), std::make_shared<Common>(), 0) {
    renew_serials();
  }

  /// The bytes that an array takes, at most a sixteenth of the largest Index, which no backend has.
  template <class T>
  static Index bytes_of(Index count) {
    constexpr Index unit = 256, size = sizeof(T), most = std::numeric_limits<Index>::max() / 16 / size;
    return (std::min(count, most) * size + unit - 1) / unit * unit;
  }

  /// Makes room for this many bytes of arrays. Nothing is in use. Throws OutOfMemory on this rank alone; then
  /// all ranks must release().
  void reserve(Index bytes) { memory_.reserve(backend_, bytes); }
  /// Gives the memory back, with that of inner stacks. Nothing is in use.
  void release();
  /// Changes the serial numbers of this stack, of inner ones, and of those around it, whose memory stays.
  void renew_serials();
  /// Whoever reserved memory when this number was the same still has it, as well as memory that it shares
  /// with others on the same grid. No two stacks have the same.
  Index serial() const { return common_->round * most_stacks + depth_; }

  /// Says that an operator on the grid could not take memory, and so may have lost some that others share.
  void note_loss() { ++common_->losses; }
  /// How often that happened.
  Index losses() const { return common_->losses; }

  /// The next array. There is room for it.
  std::byte* push(Index bytes);
  void pop(Index bytes) { in_use_ -= bytes; }

  /// Says, while it lives, that an operator works with this stack.
  class Working {
   public:
    explicit Working(ScratchStack& stack) : stack_(stack) { ++stack_.working_; }
    ~Working() { --stack_.working_; }
    Working(const Working&) = delete;
    Working& operator=(const Working&) = delete;

   private:
    ScratchStack& stack_;
  };
  bool has_operator() const { return working_ > 0; }

  /// The stack of operators that callers' code applies within an operator on this one.
  const std::shared_ptr<ScratchStack>& inner();

  /// Returns the object of this type and kind that operators on the grid share. Calls make() if no operator
  /// keeps one.
  template <class Shared, class Make>
  std::shared_ptr<Shared> shared(int kind, Make&& make) {
    std::weak_ptr<void>& known = common_->objects[{typeid(Shared), kind}];
    if (const auto object = known.lock()) return std::static_pointer_cast<Shared>(object);
    const std::shared_ptr<Shared> made = make();
    known = made;
    return made;
  }

 private:
  static constexpr Index most_stacks = Index{1} << 20;  // one within the other

  /// Of a stack, and all that are within or around it.
  struct Common {
    Index round = 0, losses = 0;
    std::map<std::pair<std::type_index, int>, std::weak_ptr<void>> objects{};
  };

  ScratchStack(std::shared_ptr<Backend> backend, std::shared_ptr<Common> common, Index depth)
      : backend_(std::move(backend)), common_(std::move(common)), depth_(depth) {}

  std::shared_ptr<Backend> backend_;
  Buffer<std::byte> memory_;
  std::shared_ptr<ScratchStack> inner_;
  std::shared_ptr<Common> common_;
  Index depth_, in_use_ = 0;
  int working_ = 0;
};

namespace detail {
/// The stack of the operators that are applied now.
ScratchStack& scratch_of(const ProcessGrid& grid);
}  // namespace detail

/// While it lives, operators on the grid use the next inner stack. So those that callers' code applies are
/// outermost there.
class InnerScratch {
 public:
  explicit InnerScratch(const ProcessGrid& grid);
  ~InnerScratch();
  InnerScratch(const InnerScratch&) = delete;
  InnerScratch& operator=(const InnerScratch&) = delete;

 private:
  const ProcessGrid& grid_;
  std::shared_ptr<ScratchStack> outer_;
};

/// An array of the scratch memory, while it lives. Arrays end in the opposite order of their beginnings.
template <class T>
class ScratchArray {
 public:
  ScratchArray(const ProcessGrid& grid, Index count)
      : stack_(detail::scratch_of(grid)),
        bytes_(ScratchStack::bytes_of<T>(count)),
        data_(reinterpret_cast<T*>(stack_.push(bytes_))) {}
  ~ScratchArray() { stack_.pop(bytes_); }
  ScratchArray(const ScratchArray&) = delete;
  ScratchArray& operator=(const ScratchArray&) = delete;

  T* data() const { return data_; }

 private:
  ScratchStack& stack_;
  Index bytes_;
  T* data_;
};

}  // namespace gridlops
