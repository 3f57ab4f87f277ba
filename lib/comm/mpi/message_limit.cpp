// SPDX-License-Identifier: BSD-3-Clause
// In a file of its own, so that tests can link another limit without recompiling anything else.
#include "comm/mpi/mpi_transfer.hpp"

const gridlops::Index gridlops::max_message_elements = GRIDLOPS_MAX_MESSAGE_ELEMENTS;
