// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

#include "gridlops/base/types.hpp"

namespace gridlops {

/// The operations of a Communicator, as counted and as named in messages.
enum class CommOperation {
  barrier,
  broadcast,
  reduce,
  all_reduce,
  gather,
  scatter,
  all_gather,
  reduce_scatter,
  all_to_all,
  send,
  receive,
  get,
  split
};
inline constexpr std::size_t comm_operation_count = 13;

/// Counts the payload that one rank has sent and received. It is counted by these rules, whatever a library
/// moves internally, for s ranks and an operand of N bytes in total:
///   broadcast       a non-root receives N, the root sends N·(s−1)
///   reduce          the root receives N·(s−1), a non-root sends N
///   gather, scatter the root receives (sends) all parts but its own, the others send (receive) theirs
///   all_gather      receives N − own, sends own·(s−1)
///   reduce_scatter  receives own·(s−1), sends N − own
///   all_reduce      a reduce_scatter and an all_gather on a balanced cut of the elements
///   all_to_all      receives and sends all parts but its own
///   send, receive   N
///   get             receives N; the rank that owns the data takes no part, and counts nothing
/// Apart from gets, all ranks together send as many bytes as they receive.
struct Traffic {
  Index bytes_sent = 0;
  Index bytes_received = 0;
  Index bytes_read_from_peers = 0;  ///< read in place in other ranks' memory, on transports that can
  std::array<Index, comm_operation_count> calls{};
  double seconds_waiting = 0;  ///< in blocking operations, for requests, and for blocks that others publish
  /// How often this rank compared arguments with others before data moved (GRIDLOPS_CHECK), and the bytes
  /// that it sent for that. Of the numbers above, only seconds_waiting includes agreements.
  Index agreements = 0, agreement_bytes = 0;

  Index calls_of(CommOperation operation) const { return calls[static_cast<std::size_t>(operation)]; }
};

}  // namespace gridlops
