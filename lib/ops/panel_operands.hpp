// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/buffer.hpp"
#include "gridlops/communicator.hpp"
#include "ops/panels.hpp"

namespace gridlops {

// How the operands of a product in panels come to the ranks, and its sums to their owners. Several steps are
// under way at a time, each in a slot of its own.

/// The panels of one operand: here those of this rank's own block, which need no way.
template <Scalar T>
class PanelSource {
 public:
  explicit PanelSource(std::size_t slots);
  virtual ~PanelSource() = default;
  PanelSource(const PanelSource&) = delete;
  PanelSource& operator=(const PanelSource&) = delete;

  /// Sets up what products need (collective; all ranks throw what one throws).
  virtual void connect() {}
  /// Takes the memory for a block of this shape, at this place or, if that is null, at any; then for the
  /// steps of a product with it, in their order. Both send nothing.
  virtual void reserve_block(MatrixView<const T> block) { block_ = block; }
  virtual void reserve(std::size_t /*step*/, const Part&) {}

  /// A product begins, in which this is the rank's block (collective over those that have its panels).
  virtual void begin(MatrixView<const T> block) { block_ = block; }
  /// Begins to bring a part to the ranks that take the step.
  virtual void start(std::size_t step, const Part& part) { slot(step).panel = own(part); }
  /// That part, once it is there.
  virtual MatrixView<const T> arrived(std::size_t step);
  /// Lets what is under way advance: many MPI libraries move data only while they are called.
  virtual void advance();
  /// The product ends; on return the block may change (collective).
  virtual void end() {}

 protected:
  struct Slot {
    MatrixView<const T> panel;
    Request request;
  };
  Slot& slot(std::size_t step) { return slots_[place(step)]; }
  std::size_t& place(std::size_t step) { return places_[step % places_.size()]; }
  std::size_t slots() const { return slots_.size(); }
  MatrixView<const T> own(const Part& part) const { return block_.block(part.rows, part.cols); }
  MatrixView<const T> block() const { return block_; }

 private:
  MatrixView<const T> block_;
  std::vector<Slot> slots_;
  std::vector<std::size_t> places_;  // the slot of each step under way
};

/// Memory for what travels, by slot.
template <Scalar T>
using SlotMemory = std::vector<Buffer<T>>;
template <Scalar T>
std::shared_ptr<SlotMemory<T>> slot_memory(std::size_t slots) {
  return std::make_shared<SlotMemory<T>>(slots);
}

/// Panels that their owners broadcast to the ranks of comm, from their own memory where that has no gaps.
template <Scalar T>
std::shared_ptr<PanelSource<T>> broadcast_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                                 std::shared_ptr<SlotMemory<T>> memory);

/// Panels that the ranks of comm read in, or get from, their owners' memory. Where the block stays as it is
/// and where it is as long as this lives, the others learn of it once.
template <Scalar T>
std::shared_ptr<PanelSource<T>> peer_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                            std::size_t slots, bool block_stays);

/// The sums of the steps: here they are added to this rank's own block C at once.
template <Scalar T>
class PanelSum {
 public:
  PanelSum() = default;
  virtual ~PanelSum() = default;
  PanelSum(const PanelSum&) = delete;
  PanelSum& operator=(const PanelSum&) = delete;

  /// Takes the memory for a step, and for so many columns. Sends nothing.
  virtual void reserve(const Panel&, Index /*cols*/) {}

  /// A product begins: C ← sums + β C.
  void begin(T beta, MatrixView<T> C) {
    beta_ = beta;
    C_ = C;
  }
  /// Where the step's product goes: these rows ← product + beta(K) times what they hold.
  virtual MatrixView<T> rows(const Panel& K) { return own(K); }
  virtual T beta(const Panel& K) const { return K.is_first ? beta_ : T(1); }
  /// Begins to bring the product to the owner; then lets what is under way advance; then waits for it.
  virtual void start(const Panel&) {}
  virtual void advance() {}
  virtual void finish(const Panel&) {}

 protected:
  MatrixView<T> own(const Panel& K) const { return C_.row_block(K.C.rows); }
  T beta() const { return beta_; }
  Index cols() const { return C_.cols; }

 private:
  T beta_ = T(0);
  MatrixView<T> C_;
};

/// Sums over the ranks of comm, reduced to the owners of the rows.
template <Scalar T>
std::shared_ptr<PanelSum<T>> reduced_sum(Communicator& comm, std::shared_ptr<Backend> backend,
                                         std::shared_ptr<SlotMemory<T>> memory, ReductionOrder order);

}  // namespace gridlops
