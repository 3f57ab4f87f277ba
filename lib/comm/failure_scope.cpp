// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure_scope.hpp"

#include <array>
#include <string>

namespace gridlops {

namespace {

thread_local FailureScope* current = nullptr;  // the outermost scope of this thread

std::string text_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return {};
  }
}

}  // namespace

FailureScope::FailureScope() : outermost_(current == nullptr ? this : current) { current = outermost_; }

FailureScope::~FailureScope() {
  if (outermost_ == this) current = nullptr;
}

void FailureScope::throw_together(Communicator& comm) {
  KeptFailure& kept = outermost_->kept_;
  const std::string mine = failed() ? text_of(kept.failure()) : std::string();
  std::array<std::int32_t, 2> alike{failed(), broadcast_text(comm, mine, 0) == mine};
  comm.all_reduce(alike, ReduceOp::min);
  // What the outermost scope has kept stays there until all that its ranks do together agrees on it.
  const auto fail = [&] {
    if (outermost_ == this) kept.rethrow();
    if (failed()) std::rethrow_exception(kept.failure());
  };
  if (alike[0] != 0 && alike[1] != 0) fail();
  succeed_together(comm, fail);
}

}  // namespace gridlops
