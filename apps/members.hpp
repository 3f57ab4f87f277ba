// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "gridlops/dist_matrix.hpp"
#include "gridlops/error.hpp"

namespace gridlops::program {

/// Runs work on the members of the grid, which may throw alike; idle ranks sleep meanwhile, then all ranks
/// throw the error, if there was one (collective over world). An error that one rank may have met alone goes
/// through unchanged, to end the job.
void run_on_members(Communicator& world, const ProcessGrid& grid, const std::function<void()>& work);

/// What make() returns, which may run out of memory on any rank (collective): all ranks throw then.
template <class Make>
auto allocate_together(Communicator& comm, Make&& make) {
  std::optional<decltype(make())> made;
  succeed_together(comm, [&] { made.emplace(make()); });
  return std::move(*made);
}

/// A matrix of this layout, uninitialised (collective over the grid).
template <Scalar T>
DistMatrix<T> allocate_matrix(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout) {
  return allocate_together(grid->comm(), [&] { return DistMatrix<T>(grid, layout); });
}

class Stopwatch {
 public:
  /// Seconds since the last lap, or since the stopwatch was made.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> seconds = now - begin_;
    begin_ = now;
    return seconds.count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace gridlops::program
