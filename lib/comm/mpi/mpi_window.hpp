// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/mpi/mpi_transfer.hpp"

namespace gridlops {

/// A dynamic MPI window, in one access epoch for its whole lifetime: a get needs no call of the memory's
/// owner. Whether a get makes progress while the owner computes depends on the MPI library.
class MpiWindow {
 public:
  /// Collective over the group. Throws CommunicationError if MPI has no windows there.
  explicit MpiWindow(const MpiGroup& group);
  /// All gets must be complete. Freeing a window waits for all ranks, which destroy it at different times, so
  /// MPI frees it when it ends.
  ~MpiWindow();
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;

  MPI_Win handle() const { return window_; }
  const MpiGroup& group() const { return group_; }

  /// Makes this rank's writes visible to gets that other ranks begin after they learn of this call.
  void synchronize();

  /// Lets others get from this memory until the owner has called detach() for it as often as attach().
  /// Returns false if MPI cannot attach it, because it overlaps other attached memory. Not collective.
  bool attach(const void* memory, Index bytes);
  void detach(const void* memory);

 private:
  struct Region {
    Index bytes = 0;
    int users = 0;
  };

  MpiGroup group_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::map<const std::byte*, Region> regions_;
};

/// Blocks that the ranks of a communicator publish, and get from each other, through the window of a larger
/// communicator. MPI can attach only a few pieces of memory at a time. So the window keeps only those of the
/// last rounds, however many blocks are published in turn:
///
///   begin_round()
///   attach()       this rank's block
///   publish()      it, and learn of all ranks' blocks
///   start_get()    parts of them, as long as holds() is true of the round
class RmaWindow {
 public:
  /// Collective over comm, whose ranks are among those of the window.
  RmaWindow(Communicator& comm, const MpiGroup& group, std::shared_ptr<MpiWindow> window);
  RmaWindow(const RmaWindow&) = delete;
  RmaWindow& operator=(const RmaWindow&) = delete;

  using Round = Index;
  /// A block in another rank's memory, with `stride` elements from one column to the next.
  struct RemoteBlock {
    Index address, stride;
  };

  /// All ranks begin the same rounds.
  Round begin_round() { return ++round_; }
  /// Whether memory attached in a round is still attached, on all ranks.
  bool holds(Round round) const { return round_ - round < rounds_held; }

  /// Lets others get from this memory in this round, and until a later publish() detaches it. Returns false
  /// if it overlaps other attached memory. Not collective.
  bool attach(const void* memory, Index bytes, bool is_new_user);
  /// Says that one user of the memory no longer needs it. Not collective.
  void detach(const void* memory);

  /// Publishes this rank's block, and returns all ranks' blocks (collective). Others get the block's current
  /// contents. All gets of earlier rounds must be complete, because publish() detaches memory of rounds that
  /// are no longer held.
  std::vector<RemoteBlock> publish(const void* mine, Index stride);

  /// Gets rows × cols elements from an address in another rank's memory, with `stride` elements from one
  /// column to the next, into an array of that many elements without gaps.
  Request start_get(int rank, Index address, Index rows, Index cols, Index stride, Elements into);

 private:
  static constexpr Round rounds_held = 2;

  struct Attachment {
    Round round = 0;
    int users = 0;
    Index bytes = 0;
    bool is_attached = false;
  };

  Communicator& comm_;
  MpiGroup group_;
  std::shared_ptr<MpiWindow> window_;
  std::vector<int> ranks_;  // of the window
  Round round_ = 0;
  std::map<const void*, Attachment> attachments_;
};

/// Opens a window, and checks that all ranks can get from each other through it (collective over comm, whose
/// handle the group has). Throws the same UsageError on all ranks if MPI refuses that, with advice.
std::shared_ptr<MpiWindow> open_window(Communicator& comm, const MpiGroup& group);

/// The one window of a communicator whose transport is "one-sided" (collective over it at the first call).
RmaWindow& rma_window_of(Communicator& comm);

}  // namespace gridlops
