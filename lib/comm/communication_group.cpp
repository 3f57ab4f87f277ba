// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/communication_group.hpp"

#include <exception>

namespace gridlops {

CommunicationGroup::CommunicationGroup(Communicator& family) : family_(family) { family_.do_open_group(); }

// An error of closing ends the program, like any that a destructor meets: close() throws it.
CommunicationGroup::~CommunicationGroup() {
  if (!is_open_) return;
  if (std::uncaught_exceptions() > 0) {
    family_.do_abandon_group();
  } else {
    family_.do_close_group();
  }
}

void CommunicationGroup::close() {
  is_open_ = false;
  family_.do_close_group();
}

}  // namespace gridlops
