// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure_scope.hpp"

#include <array>
#include <new>
#include <string>

#include "base/message.hpp"

namespace gridlops {

namespace {

enum class Kind : std::int32_t { other, usage, shape, input, output, memory, communication };

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

[[noreturn]] void rethrow(Kind kind, ExitStatus status, const std::string& text) {
  switch (kind) {
    case Kind::usage:
      throw UsageError(text);
    case Kind::shape:
      throw ShapeError(text);
    case Kind::input:
      throw InputError(text);
    case Kind::output:
      throw OutputError(text);
    case Kind::memory:
      throw OutOfMemory(text, KnownTo::all_ranks);
    case Kind::communication:
      throw CommunicationError(text, KnownTo::all_ranks);
    case Kind::other:
      break;
  }
  throw Error(status, text);
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
  rethrow(static_cast<Kind>(header[0]), static_cast<ExitStatus>(header[1]),
          message("rank ", failed, ": ", text));
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
  // The outermost scope keeps the exception until all ranks that it concerns have agreed on it.
  const auto fail = [&] {
    if (outermost_ == this) kept.rethrow();
    if (failed()) std::rethrow_exception(kept.failure());
  };
  if (alike[0] != 0 && alike[1] != 0) fail();
  succeed_together(comm, fail);
}

}  // namespace gridlops
