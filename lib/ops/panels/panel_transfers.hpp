// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <vector>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/local/buffer.hpp"
#include "ops/panels/panels.hpp"

namespace gridlops {

// These classes bring the operands of a panel product to the ranks, and its sums to their owners. Several
// steps are under way at a time, each in its own slot.

/// Brings the panels of one operand to the ranks that need them. This base class takes them from the rank's
/// own block, so no data move.
template <Scalar T>
class PanelSource {
 public:
  explicit PanelSource(std::size_t slots);
  virtual ~PanelSource() = default;
  PanelSource(const PanelSource&) = delete;
  PanelSource& operator=(const PanelSource&) = delete;

  /// Sets up communication for products (collective; if one rank throws, all throw that error).
  virtual void connect() {}
  /// These take memory: first for a block of this shape, at this address or, if that is null, at any; then
  /// for the steps of a product with it, in order. They send nothing.
  virtual void reserve_block(MatrixView<const T> block) { block_ = block; }
  virtual void reserve(std::size_t /*step*/, const PanelPart&) {}

  /// Begins a product with this as the rank's block (collective over the ranks that take its panels).
  virtual void begin(MatrixView<const T> block) { block_ = block; }
  /// Begins to bring a part to the ranks that take the step.
  virtual void start(std::size_t step, const PanelPart& part) { slot(step).panel = own(part); }
  /// Waits for that part and returns it.
  virtual MatrixView<const T> arrived(std::size_t step);
  /// Advances pending transfers: many MPI libraries move data only while they are called.
  virtual void advance();
  /// Ends the product (collective). On return the block may change, unless the operator owns it.
  virtual void end() {}
  /// Says that a permanent block now has other elements (on all ranks, between products).
  virtual void renew() {}

 protected:
  struct ArrivingPanel {
    MatrixView<const T> panel;
    Request request;
  };
  ArrivingPanel& slot(std::size_t step) { return slots_[place(step)]; }
  std::size_t& place(std::size_t step) { return places_[step % places_.size()]; }
  std::size_t slots() const { return slots_.size(); }
  MatrixView<const T> own(const PanelPart& part) const { return block_.block(part.rows, part.cols); }
  MatrixView<const T> block() const { return block_; }

 private:
  MatrixView<const T> block_;
  std::vector<ArrivingPanel> slots_;
  std::vector<std::size_t> places_;  // the slot of each step under way
};

/// Memory for transfers, with one buffer per slot.
template <Scalar T>
using SlotMemory = std::vector<Buffer<T>>;
template <Scalar T>
std::shared_ptr<SlotMemory<T>> slot_memory(std::size_t slots) {
  return std::make_shared<SlotMemory<T>>(slots);
}

/// Whether the owner of a panel also sends a copy, which lies in memory as the others' do, or sends it from
/// its own memory if that has no gaps.
enum class PanelCopies { where_needed, everywhere };

/// Makes a source that broadcasts panels to the ranks of comm.
template <Scalar T>
std::shared_ptr<PanelSource<T>> broadcast_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                                 std::shared_ptr<SlotMemory<T>> memory,
                                                 PanelCopies copies = PanelCopies::where_needed);

/// Which block a source of panels takes: a new one for each product, or always the same. The latter may
/// belong to the caller, who may change it between products, before calling renew().
enum class SourceBlock { of_product, of_operator, of_caller };

/// Makes a source whose panels the ranks of comm read in place or copy from their owners' memory. They learn
/// of a permanent block once, until renew() is called.
template <Scalar T>
std::shared_ptr<PanelSource<T>> peer_panels(Communicator& comm, std::shared_ptr<Backend> backend,
                                            std::size_t slots, SourceBlock kind);

/// Adds up the products of the steps. This base class adds them directly to the rank's own block C.
template <Scalar T>
class PanelSum {
 public:
  PanelSum() = default;
  virtual ~PanelSum() = default;
  PanelSum(const PanelSum&) = delete;
  PanelSum& operator=(const PanelSum&) = delete;

  /// Takes the memory for a step with this many columns. Sends nothing.
  virtual void reserve(const Panel&, Index /*cols*/) {}

  /// Begins a product: C ← sums + β C.
  void begin(T beta, MatrixView<T> C) {
    beta_ = beta;
    C_ = C;
  }
  /// Returns the rows that receive the step's product: rows ← product + beta(K) · rows.
  virtual MatrixView<T> rows(const Panel& K) { return own(K); }
  virtual T beta(const Panel& K) const { return K.is_first ? beta_ : T(1); }
  /// start() begins to send the step's product to its owner, advance() advances pending transfers, and
  /// finish() waits for the step.
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

/// Makes an object that sums over the ranks of comm and reduces the sums to the owners of the rows.
template <Scalar T>
std::shared_ptr<PanelSum<T>> reduced_sum(Communicator& comm, std::shared_ptr<Backend> backend,
                                         std::shared_ptr<SlotMemory<T>> memory, ReductionOrder order);

}  // namespace gridlops
