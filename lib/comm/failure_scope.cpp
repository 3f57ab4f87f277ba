// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure_scope.hpp"

#include <array>
#include <new>
#include <string>

#include "base/message.hpp"
#include "comm/agreement.hpp"

namespace gridlops {

namespace {

enum class Kind : std::int32_t { other, usage, shape, input, output, memory, communication, suspended };

/// An error in the form in which ranks send it.
struct Failure {
  bool happened = false;
  Kind kind = Kind::other;
  ExitStatus status = ExitStatus::internal;
  std::string text;
};

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

Failure run_and_catch(const std::function<void()>& local_part) {
  try {
    local_part();
    return {};
  } catch (const Error& error) {
    return {true, kind_of(error), error.status(), error.what()};
  } catch (const std::bad_alloc& error) {
    return {true, Kind::memory, ExitStatus::out_of_memory, message("not enough memory (", error.what(), ")")};
  } catch (const std::exception& error) {
    return {true, Kind::other, ExitStatus::internal, error.what()};
  } catch (...) {
    return {true, Kind::other, ExitStatus::internal, "an exception that is no std::exception"};
  }
}

template <class E>
[[noreturn]] void throw_of_rank(E error, int rank) {
  error.set_rank(rank);
  throw error;
}

/// Throws the error of a rank.
[[noreturn]] void rethrow(int rank, Kind kind, ExitStatus status, const std::string& failure) {
  const std::string text = message("rank ", rank, ": ", failure);
  switch (kind) {
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
  throw_of_rank(Error(status, text), rank);
}

}  // namespace

void succeed_together(Communicator& comm, const std::function<void()>& local_part) {
  const Failure mine = run_and_catch(local_part);
  std::array<std::int32_t, 1> lowest{mine.happened ? comm.rank() : comm.size()};
  comm.all_reduce(lowest, ReduceOp::min);
  const int failed = lowest[0];
  if (failed == comm.size()) return;

  std::array<std::int32_t, 2> header{static_cast<std::int32_t>(mine.kind),
                                     static_cast<std::int32_t>(mine.status)};
  comm.broadcast(header, failed);
  const std::string text = broadcast_text(comm, mine.text, failed);
  rethrow(failed, static_cast<Kind>(header[0]), static_cast<ExitStatus>(header[1]), text);
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
  const std::string text = current == nullptr ? "" : text_of(current->kept_.failure());
  return text.empty() ? "" : "; this rank had yet to tell the others of: " + text;
}

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
  require<CommunicationError>(
      any,
      "the ranks are out of step: a sum does not say what this rank put into it. It must tell others of ",
      text_of(failure));
  throw_together(comm, failure);
}

}  // namespace gridlops
