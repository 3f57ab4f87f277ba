// SPDX-License-Identifier: BSD-3-Clause
// Alone in its file, so that tests link another limit without compiling anything else again.
#include "comm/mpi/mpi_transfer.hpp"

const gridlops::Index gridlops::max_message_elements = GRIDLOPS_MAX_MESSAGE_ELEMENTS;
