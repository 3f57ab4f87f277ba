// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>

#include "comm/mpi_call.hpp"

namespace gridlops {

/// Memory that the ranks of a group get from each other by one-sided operations of MPI, in one access epoch
/// that lasts as long as the window: no call of the owner answers a get. Whether a get makes progress while
/// the owner computes is the MPI library's affair.
class PeerWindow {
 public:
  /// Collective over the group. Throws CommunicationError if MPI has no windows there.
  PeerWindow(const MpiGroup& group, std::shared_ptr<Traffic> account);
  /// Collective; whoever gets must have finished.
  ~PeerWindow();
  PeerWindow(const PeerWindow&) = delete;
  PeerWindow& operator=(const PeerWindow&) = delete;

  /// Lets others get from this memory until as many calls of hide() as of expose() have named it. False if it
  /// cannot be, because it shares a part with other memory that is exposed. Local.
  bool expose(const void* memory, Index bytes);
  void hide(const void* memory);

  /// Where memory of this rank is, for others.
  Index address_of(const void* memory) const;
  /// What this rank has written until now is what others get after they have learnt of this call.
  void publish();

  /// rows × cols elements of reals_per_element reals each, `stride` elements from column to column at an
  /// address of another rank's, into an array of as many without gaps.
  Request start_get(int rank, Index address, Index rows, Index cols, Index stride, Elements into);

 private:
  struct Region {
    Index bytes = 0;
    int users = 0;
  };

  MpiGroup group_;
  std::shared_ptr<Traffic> account_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::map<const std::byte*, Region> regions_;
};

/// The window of a communicator whose transport is "one-sided". Collective over it at the first call.
PeerWindow& window_of(Communicator& comm);

}  // namespace gridlops
