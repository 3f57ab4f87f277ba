// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include "conformance/operands.hpp"

namespace gridlops::testing {

/// Checks what every Communicator must do, in sections of the calling test case. make() is collective.
void check_communicator_contract(const std::function<Subject()>& make);

}  // namespace gridlops::testing
