// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure_scope.hpp"

#include <array>
#include <new>
#include <string>
#include <utility>

#include "base/message.hpp"
#include "comm/agreement.hpp"
#include "comm/watchdog.hpp"

namespace gridlops {

namespace {

enum class Kind : std::int32_t { other, usage, shape, input, output, memory, communication, suspended };

Kind kind_of(const Error& error) {
  if (dynamic_cast<const ShapeError*>(&error) != nullptr) return Kind::shape;
  if (dynamic_cast<const UsageError*>(&error) != nullptr) return Kind::usage;
  if (dynamic_cast<const InputError*>(&error) != nullptr) return Kind::input;
  if (dynamic_cast<const OutputError*>(&error) != nullptr) return Kind::output;
  if (dynamic_cast<const OutOfMemory*>(&error) != nullptr) return Kind::memory;
  if (dynamic_cast<const CommunicationError*>(&error) != nullptr) return Kind::communication;
  if (dynamic_cast<const Suspended*>(&error) != nullptr) return Kind::suspended;
  return Kind::other;
}

template <class E>
[[noreturn]] void throw_of_rank(E error, int rank) {
  error.set_rank(rank);
  throw error;
}

}  // namespace

SentFailure::SentFailure(const std::exception_ptr& failure) {
  const auto set = [this](Kind its_kind, ExitStatus its_status, std::string its_text) {
    kind = static_cast<std::int32_t>(its_kind);
    status = static_cast<std::int32_t>(its_status);
    text = std::move(its_text);
  };
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    set(kind_of(error), error.status(), error.what());
  } catch (const std::bad_alloc& error) {
    set(Kind::memory, ExitStatus::out_of_memory, message("not enough memory (", error.what(), ")"));
  } catch (const std::exception& error) {
    set(Kind::other, ExitStatus::internal, error.what());
  } catch (...) {
    set(Kind::other, ExitStatus::internal, "an exception that is no std::exception");
  }
}

void rethrow(int rank, const SentFailure& failure) {
  const std::string text = message("rank ", rank, ": ", failure.text);
  switch (static_cast<Kind>(failure.kind)) {
    case Kind::usage:
      throw_of_rank(UsageError(text), rank);
    case Kind::shape:
      throw_of_rank(ShapeError(text), rank);
    case Kind::input:
      throw_of_rank(InputError(text), rank);
    case Kind::output:
      throw_of_rank(OutputError(text), rank);
    case Kind::memory:
      throw_of_rank(OutOfMemory(text, KnownTo::all_ranks), rank);
    case Kind::communication:
      throw_of_rank(CommunicationError(text, KnownTo::all_ranks), rank);
    case Kind::suspended:
      throw_of_rank(Suspended(text), rank);
    case Kind::other:
      break;
  }
  throw_of_rank(Error(static_cast<ExitStatus>(failure.status), text), rank);
}

void succeed_together(Communicator& comm, const std::function<void()>& local_part) {
  std::exception_ptr failure;
  try {
    local_part();
  } catch (...) {
    failure = std::current_exception();
  }
  const Telling telling(failure);
  std::array<std::int32_t, 1> lowest{failure != nullptr ? comm.rank() : comm.size()};
  reduce_telling(comm, lowest, ReduceOp::min, ReductionOrder::any, failure);
  const int failed = lowest[0];
  if (failure != nullptr && failed > comm.rank())
    tell_out_of_step(failure, "a reduction does not say what this rank put into it");
  if (failed == comm.size()) return;

  SentFailure sent;
  if (failure != nullptr) sent = SentFailure(failure);
  std::array<std::int32_t, 2> header{sent.kind, sent.status};
  comm.broadcast(header, failed);
  sent.text = broadcast_text(comm, sent.text, failed);
  sent.kind = header[0];
  sent.status = header[1];
  rethrow(failed, sent);
}

std::string broadcast_text(Communicator& comm, const std::string& text, int root) {
  std::array<Index, 1> length{static_cast<Index>(text.size())};
  comm.broadcast(length, root);
  std::string copy = comm.rank() == root ? text : std::string(static_cast<std::size_t>(length[0]), '\0');
  comm.broadcast(copy, root);
  return copy;
}

namespace {

thread_local FailureScope* current = nullptr;  // the outermost scope of this thread
thread_local const std::exception_ptr* told = nullptr;
bool out_of_step = false;

}  // namespace

std::string text_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return {};
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

void throw_together(Communicator& comm, const std::exception_ptr& mine) {
  const std::string text = text_of(mine);
  std::array<std::int32_t, 2> alike{mine != nullptr, broadcast_text(comm, text, 0) == text};
  comm.all_reduce(alike, ReduceOp::min);
  if (alike[0] != 0 && alike[1] != 0) std::rethrow_exception(mine);
  succeed_together(comm, [&] {
    if (mine != nullptr) std::rethrow_exception(mine);
  });
  throw Error(ExitStatus::internal, "ranks were to throw an exception that none of them has");
}

FailureScope::FailureScope() : outermost_(current == nullptr ? this : current) { current = outermost_; }

FailureScope::~FailureScope() {
  if (outermost_ == this) current = nullptr;
}

std::string kept_failure_text() {
  const std::string text = text_of(failure_to_tell());
  return text.empty() ? "" : "; this rank had yet to tell the others of: " + text;
}

bool ranks_are_out_of_step() { return out_of_step; }

void set_ranks_out_of_step(bool they_are) { out_of_step = they_are; }

std::exception_ptr failure_to_tell() {
  if (told != nullptr && *told != nullptr) return *told;
  return current == nullptr ? nullptr : current->kept_.failure();
}

void tell_out_of_step(const std::exception_ptr& failure, const char* found) {
  const Telling telling(failure);
  if (Watchdog* const watchdog = Watchdog::current()) watchdog->tell_failure(Watchdog::Clock::now());
  throw CommunicationError(
      message("the ranks are out of step: ", found, ". This rank must tell others of: ", text_of(failure)));
}

Telling::Telling(const std::exception_ptr& failure) : before_(std::exchange(told, &failure)) {}

Telling::~Telling() { told = before_; }

bool FailureScope::is_open() { return current != nullptr; }

void FailureScope::close(Communicator& comm) {
  if (outermost_ != this) return;
  if (!ran_callers_code_ || check_level() == Check::off) return kept_.rethrow();
  agree(comm, "code of the caller's", [this](Agreement&) { kept_.rethrow(); });
}

// The outermost scope keeps the exception until all ranks that it concerns have agreed on it.
void FailureScope::throw_kept(Communicator& comm, bool any) {
  const std::exception_ptr failure = outermost_->kept_.failure();
  if (outermost_ == this) kept_ = {};
  if (!any) tell_out_of_step(failure, "a sum does not say what this rank put into it");
  throw_together(comm, failure);
}

}  // namespace gridlops
