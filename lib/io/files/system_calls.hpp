// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "base/at_work.hpp"
#include "gridlops/base/types.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

/// The system's reason for the last failed call.
inline std::string reason() { return std::system_category().message(errno); }

/// The result of a call, repeated while signals interrupt it.
template <class Call>
auto uninterrupted(Call&& call) {
  const AtWork at_work;
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Moves bytes by transfer(done, count), which returns the number moved, or −1 or 0 if it could not. Returns
/// the total moved. On slow disks it goes in pieces, so that other ranks hear of this one meanwhile.
template <class Transfer>
Index transfer_all(Index bytes, Transfer&& transfer) {
  constexpr Index piece = Index{64} << 20;
  Index done = 0;
  while (done < bytes) {
    keep_alive();
    const auto count = static_cast<std::size_t>(std::min(piece, bytes - done));
    const auto moved = uninterrupted([&] { return transfer(done, count); });
    if (moved <= 0) {
      if (moved == 0) errno = 0;
      break;
    }
    done += moved;
  }
  return done;
}

}  // namespace gridlops
