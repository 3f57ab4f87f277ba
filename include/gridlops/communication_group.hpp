// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "gridlops/communicator.hpp"
#include "gridlops/export.hpp"

namespace gridlops {

/// Operations of several communicators that go out together where the transport gains by it, as NCCL does by
/// one launch; elsewhere it changes nothing. What counts is what is started between the constructor and
/// close(), on `family` and communicators of the same descent by split(): start_… only, at most once on each
/// communicator, in one order on all their ranks. Its requests may be waited for once the group is closed,
/// and its operands read then; before that a wait throws UsageError where operations are held back. Groups do
/// not nest.
class GRIDLOPS_EXPORT CommunicationGroup {
 public:
  explicit CommunicationGroup(Communicator& family);
  CommunicationGroup(const CommunicationGroup&) = delete;
  CommunicationGroup& operator=(const CommunicationGroup&) = delete;
  /// Closes; while an exception unwinds the stack what was started is abandoned.
  ~CommunicationGroup();

  /// Throws CommunicationError if the transport fails.
  void close();

 private:
  Communicator& family_;
  bool is_open_ = true;
};

}  // namespace gridlops
