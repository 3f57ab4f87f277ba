// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "comm/mpi_call.hpp"

namespace gridlops {

/// A dynamic window of MPI in one access epoch that lasts as long as it: no call of the owner answers a get.
/// Whether a get makes progress while the owner computes is the MPI library's affair.
class MpiWindow {
 public:
  /// Collective over the group. Throws CommunicationError if MPI has no windows there.
  explicit MpiWindow(const MpiGroup& group);
  /// Collective; whoever gets must have finished. While an exception unwinds the stack the window is left to
  /// the end of the job.
  ~MpiWindow();
  MpiWindow(const MpiWindow&) = delete;
  MpiWindow& operator=(const MpiWindow&) = delete;

  MPI_Win handle() const { return window_; }
  const MpiGroup& group() const { return group_; }

  /// What this rank has written until now is what others get after they have learnt of this call.
  void publish();

  /// Lets others get from this memory until as many calls of detach() as of attach() have named it. False if
  /// it cannot be, because it shares a part with other memory that is attached. Local.
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

/// Memory that the ranks of a communicator get from each other through the window of a larger one. Of MPI's
/// few places for attached memory it takes those of the last rounds only, however many blocks are shown in
/// turn:
///
///   begin_round()
///   expose()       this rank's block
///   all_places()   of all ranks' blocks
///   start_get()    parts of them, until they are said to be gone
class PeerWindow {
 public:
  /// Collective over comm, whose ranks are among those of the window.
  PeerWindow(Communicator& comm, const MpiGroup& group, std::shared_ptr<MpiWindow> window);
  PeerWindow(const PeerWindow&) = delete;
  PeerWindow& operator=(const PeerWindow&) = delete;

  using Round = Index;
  struct Place {
    Index address, stride;
  };

  /// All ranks begin the same rounds.
  Round begin_round() { return ++round_; }
  /// Whether what was exposed in a round still is, on all ranks.
  bool holds(Round round) const { return round_ - round < rounds_held; }

  /// Lets others get from this memory in this round, and until a later one lets it go. False if it cannot be,
  /// because it shares a part with other memory. Local.
  bool expose(const void* memory, Index bytes, bool is_new_user);
  /// One user of the memory needs it no more. Local.
  void hide(const void* memory);

  /// Where the ranks' blocks are, and what they have written until now is what others get (collective). All
  /// have got what they wanted in earlier rounds, whose memory is let go.
  std::vector<Place> all_places(const void* mine, Index stride);

  /// rows × cols elements of reals_per_element reals each, `stride` elements from column to column at an
  /// address of another rank's, into an array of as many without gaps.
  Request start_get(int rank, Index address, Index rows, Index cols, Index stride, Elements into);

 private:
  static constexpr Round rounds_held = 2;

  struct Exposure {
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
  std::map<const void*, Exposure> exposed_;
};

/// A window in which all ranks have been seen to get from each other (collective over comm, whose handle the
/// group has). Throws UsageError alike on all ranks where MPI refuses that, and says what to try.
std::shared_ptr<MpiWindow> open_window(Communicator& comm, const MpiGroup& group);

/// The window of a communicator whose transport is "one-sided". Collective over it at the first call.
PeerWindow& window_of(Communicator& comm);

}  // namespace gridlops
