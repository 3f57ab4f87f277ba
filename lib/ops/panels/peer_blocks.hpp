// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "gridlops/comm/communicator.hpp"
#include "gridlops/dist/partition.hpp"
#include "gridlops/local/buffer.hpp"
#include "gridlops/local/matrix_view.hpp"

namespace gridlops {

/// A part of some rank's block. It has arrived once its request is complete.
template <Scalar T>
struct PeerPart {
  MatrixView<const T> block;
  Request arrival;
};

/// Blocks that the ranks of a communicator publish to each other. Their owners take no part when others read.
/// All ranks go through the same rounds:
///
///   publish(mine)    begins a round (collective)
///   start_reading()  begins to read a part of a block that a rank publishes
///   done_reading()   says that this rank has finished reading in this round
///   await_readers()  waits until mine may change, unless it was published permanently
///
/// If the block is the same in every round, begin each round with publish_for_good(mine) instead.
template <Scalar T>
class PeerBlocks {
 public:
  virtual ~PeerBlocks() = default;
  PeerBlocks(const PeerBlocks&) = delete;
  PeerBlocks& operator=(const PeerBlocks&) = delete;

  /// Sets up the rounds (collective; if one rank throws, all throw that error). After one success, further
  /// calls do nothing.
  virtual void connect() = 0;
  /// Takes the memory for publishing a block of this shape. The block is at this address or, if that is null,
  /// anywhere in the backend's memory.
  virtual void reserve_copy(MatrixView<const T> mine) = 0;
  virtual void reserve_publishable(Index rows, Index cols) = 0;
  /// Takes the memory that start_reading() needs for this many elements.
  void reserve_part(Buffer<T>& memory, Index elements) const {
    if (!in_place()) memory.reserve(backend_, elements);
  }

  /// Whether parts are read in place, so that reading them ahead of their use gains nothing.
  virtual bool in_place() const = 0;
  /// Returns memory that publish() need not copy. It is valid until the next call.
  virtual MatrixView<T> publishable(Index rows, Index cols) = 0;

  void publish(MatrixView<const T> mine);
  /// Collective.
  virtual void done_reading() = 0;
  virtual void await_readers() = 0;
  /// Awaits readers, also for a block that was published permanently.
  virtual void await_every_reader() = 0;

  /// Begins a round (collective). The block stays in place and unchanged until renew() is called, so the
  /// others need not learn of it again.
  void publish_for_good(MatrixView<const T> mine);
  /// Says that permanently published blocks now have other elements (on all ranks, between rounds).
  virtual void renew() = 0;

  /// Begins to read this part of the block that `rank` publishes. `memory` holds parts that travel.
  PeerPart<T> start_reading(int rank, Range rows, Range cols, Buffer<T>& memory);

 protected:
  PeerBlocks(Communicator& comm, std::shared_ptr<Backend> backend)
      : comm_(comm), backend_(std::move(backend)) {}

  Communicator& comm() const { return comm_; }
  const std::shared_ptr<Backend>& backend() const { return backend_; }
  const Kernels<T>& kernels() const { return backend_->template kernels<T>(); }

 private:
  virtual void do_publish(MatrixView<const T> mine) = 0;
  virtual void do_publish_for_good(MatrixView<const T> mine) = 0;
  virtual PeerPart<T> read(int rank, Range rows, Range cols, Buffer<T>& memory) = 0;

  Communicator& comm_;
  std::shared_ptr<Backend> backend_;
  MatrixView<const T> mine_;
};

/// Makes the peer blocks that suit the transport of comm, which must outlive them. Sends nothing before the
/// first round.
template <Scalar T>
std::unique_ptr<PeerBlocks<T>> make_peer_blocks(Communicator& comm, std::shared_ptr<Backend> backend);

}  // namespace gridlops
