// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi_transfer.hpp"

#include <utility>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

// Requests are only left if a call has failed; MPI may then still write to the scratch memory, so that is
// leaked.
MpiTransfer::~MpiTransfer() {
  if (parts_.empty()) return;
  for (auto& memory : scratch_) static_cast<void>(memory.release());
}

void MpiTransfer::send(const ConstElements& data, int destination, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    const void* chunk = slice(data, begin, count).data;
    start("MPI_Isend", count, [&](MPI_Request* request) {
      return MPI_Isend(chunk, count, type, destination, tag, group_.comm, request);
    });
  });
}

void MpiTransfer::receive(const Elements& data, int source, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    void* chunk = slice(data, begin, count).data;
    start("MPI_Irecv", count, [&](MPI_Request* request) {
      return MPI_Irecv(chunk, count, type, source, tag, group_.comm, request);
    });
    parts_.back().source = source;
    parts_.back().type = type;
  });
}

void* MpiTransfer::scratch(Index bytes) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
  return scratch_.back().get();
}

// One by one rather than by MPI_Waitall: an error then belongs to its request, and Open MPI 4.1 may never
// return from MPI_Waitall where a request fails while it waits.
void MpiTransfer::wait() {
  if (relays_ != nullptr) {
    while (!test()) relays_->advance();
    return;
  }
  for (; parts_done_ < parts_.size(); ++parts_done_) {
    Part& part = parts_[parts_done_];
    MPI_Status status;
    const int code = MPI_Wait(&part.request, &status);
    check(part, code, status);
  }
  complete();
}

bool MpiTransfer::test() {
  for (; parts_done_ < parts_.size(); ++parts_done_) {
    Part& part = parts_[parts_done_];
    MPI_Status status;
    int is_done = 0;
    const int code = MPI_Test(&part.request, &is_done, &status);
    if (code == MPI_SUCCESS && is_done == 0) return false;
    check(part, code, status);
  }
  complete();
  return true;
}

void MpiTransfer::complete() {
  parts_.clear();
  parts_done_ = 0;
  if (const auto step = std::exchange(last_step_, nullptr)) step();
}

void MpiTransfer::check(const Part& part, int code, const MPI_Status& status) const {
  group_.check(code, part.call, part.count);
  if (part.source < 0) return;
  int received = 0;
  group_.check(MPI_Get_count(&status, part.type, &received), "MPI_Get_count", part.count);
  require<CommunicationError>(received == part.count, "rank ", group_.rank, " expected ", part.count,
                              " elements from rank ", part.source, " but got ", received,
                              "; the counts that both ranks give must agree");
}

}  // namespace gridlops
