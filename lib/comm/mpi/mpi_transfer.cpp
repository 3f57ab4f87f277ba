// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/mpi_transfer.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/message.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/flight_recorder.hpp"
#include "comm/failure/job_end.hpp"
#include "comm/failure/watchdog.hpp"
#include "comm/failure/watched_wait.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops {

namespace {

std::string mpi_error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) return message("MPI error ", code);
  return {text, static_cast<std::size_t>(length)};
}

}  // namespace

MpiGroup MpiGroup::of(MPI_Comm comm, bool is_watched) {
  MpiGroup group{comm, 0, 1, is_watched};
  MPI_Comm_rank(comm, &group.rank);
  MPI_Comm_size(comm, &group.size);
  return group;
}

void MpiGroup::check(int code, const char* call, Index count) const {
  if (code == MPI_SUCCESS) return;
  throw CommunicationError(message(call, " of ", count, " elements failed on rank ", rank, " of ", size, ": ",
                                   mpi_error_text(code),
                                   "; the other ranks may wait for ever, so the job must end"));
}

BlockingCall::BlockingCall(const MpiGroup& group) : group_(group) {
  if (!group.is_watched) return;
  group.await("MPI_Ibarrier", 0, MPI_Ibarrier, group.comm);
  away_.emplace(Away::Reason::blocking_call);
}

MPI_Datatype mpi_type(ElementType type) {
  switch (type) {
    case ElementType::byte:
      return MPI_BYTE;
    case ElementType::i32:
      return MPI_INT32_T;
    case ElementType::i64:
      return MPI_INT64_T;
    case ElementType::f32:
      return MPI_FLOAT;
    case ElementType::f64:
      break;
  }
  return MPI_DOUBLE;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::prod:
      return MPI_PROD;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      break;
  }
  return MPI_MAX;
}

void copy(const ConstElements& from, const Elements& to) {
  const Index bytes = std::min(from.bytes(), to.bytes());
  if (bytes > 0 && from.data != to.data) std::memcpy(to.data, from.data, static_cast<std::size_t>(bytes));
}

bool let_go(std::span<MPI_Request> receives, std::span<MPI_Request> others) noexcept {
  if (!mpi_is_running()) return true;
  const auto are_over = [](std::span<MPI_Request> requests) {
    return std::all_of(requests.begin(), requests.end(), [](MPI_Request& request) {
      int done = 0;
      return MPI_Test(&request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
    });
  };
  const auto settle = [&] {
    wait_until([&, end = WatchedWait::Clock::now() + std::chrono::seconds(1)] {
      return (are_over(receives) && are_over(others)) || WatchedWait::Clock::now() > end;
    });
    return are_over(receives) && are_over(others);
  };
  const auto cancel = [&] {
    for (MPI_Request& request : receives)
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
  };
  try {
    if (settle()) return true;
    cancel();
    if (settle()) return true;
  } catch (const Error&) {  // the ranks wait in vain
    cancel();
    return are_over(receives) && are_over(others);
  }
  const std::string text =
      message("an exception left a communication that is under way, ", flight_recorder().last().text(),
              ". MPI may still use its operands, whose memory is given up, so nothing more can be sent, and "
              "the job must end; wait for a request before its operands go, and throw on all ranks alike",
              kept_failure_text());
  if (Watchdog* const watchdog = Watchdog::current()) {
    watchdog->end_communication(text);
    return false;
  }
  report(text);
  end_job(ExitStatus::internal);
}

// Leaks scratch memory that MPI may still use.
MpiTransfer::~MpiTransfer() {
  if (calls_.empty()) return;
  std::vector<MPI_Request> receives, others;
  for (const StartedCall& started : calls_)
    (started.source >= 0 ? receives : others).push_back(started.request);
  if (let_go(receives, others)) return;
  for (auto& memory : scratch_) static_cast<void>(memory.release());
}

void MpiTransfer::send(const ConstElements& data, int destination, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    const void* const chunk = slice(data, begin, count).data;
    start("MPI_Isend", count, MPI_Isend, chunk, count, type, destination, tag, group_.comm);
  });
}

void MpiTransfer::receive(const Elements& data, int source, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    void* const chunk = slice(data, begin, count).data;
    start("MPI_Irecv", count, MPI_Irecv, chunk, count, type, source, tag, group_.comm);
    calls_.back().source = source;
    calls_.back().type = type;
  });
}

void* MpiTransfer::scratch(Index bytes) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
  return scratch_.back().get();
}

void MpiTransfer::wait() {
  wait_until([this] { return test(); });
}

// Tests one request after another, so that an error belongs to its request.
bool MpiTransfer::test() {
  for (; calls_done_ < calls_.size(); ++calls_done_) {
    StartedCall& started = calls_[calls_done_];
    MPI_Status status;
    int is_done = 0;
    const int code = MPI_Test(&started.request, &is_done, &status);
    if (code == MPI_SUCCESS && is_done == 0) return false;
    check(started, code, status);
  }
  complete();
  return true;
}

void MpiTransfer::complete() {
  calls_.clear();
  calls_done_ = 0;
  if (const auto step = std::exchange(last_step_, nullptr)) step();
}

void MpiTransfer::check(const StartedCall& started, int code, const MPI_Status& status) const {
  group_.check(code, started.call, started.count);
  if (started.source < 0) return;
  int received = 0;
  group_.check(MPI_Get_count(&status, started.type, &received), "MPI_Get_count", started.count);
  require<CommunicationError>(received == started.count, "rank ", group_.rank, " expected ", started.count,
                              " elements from rank ", started.source, " but got ", received,
                              "; the counts that both ranks give must agree");
}

}  // namespace gridlops
