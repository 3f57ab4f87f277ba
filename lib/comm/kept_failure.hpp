// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <utility>

#include "gridlops/error.hpp"

namespace gridlops {

/// What went wrong on this rank in steps that it goes through all the same, because other ranks wait for it
/// in them.
class KeptFailure {
 public:
  /// Keeps the first exception of all steps. What ends the job is thrown on: errors of communication and of
  /// devices, which one rank alone has and cannot go on from.
  template <class Step>
  void run(Step&& step) {
    try {
      step();
    } catch (const OutOfMemory&) {
      keep();
    } catch (const Error& error) {
      if (error.known_to() == KnownTo::one_rank) throw;
      keep();
    } catch (...) {
      keep();
    }
  }

  const std::exception_ptr& failure() const { return failure_; }

  /// Throws what was kept, if anything was; then nothing is.
  void rethrow() {
    if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void keep() {
    if (failure_ == nullptr) failure_ = std::current_exception();
  }

  std::exception_ptr failure_;
};

}  // namespace gridlops
