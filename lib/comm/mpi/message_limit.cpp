// SPDX-License-Identifier: BSD-3-Clause
// A file of its own: tests link another limit without recompiling anything else.
#include "comm/mpi/mpi_transfer.hpp"

const gridlops::Index gridlops::max_message_elements = GRIDLOPS_MAX_MESSAGE_ELEMENTS;
