// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi_transfer.hpp"

#include <utility>

#include "base/message.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

// Requests are only left if a call has failed; MPI may then still write to the scratch memory, so that is
// leaked.
MpiTransfer::~MpiTransfer() {
  if (requests_.empty()) return;
  for (auto& memory : scratch_) static_cast<void>(memory.release());
}

MPI_Request* MpiTransfer::request() {
  expected_.emplace_back();
  return &requests_.emplace_back(MPI_REQUEST_NULL);
}

void MpiTransfer::send(const ConstElements& data, int destination, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    group_.check(
        MPI_Isend(slice(data, begin, count).data, count, type, destination, tag, group_.comm, request()),
        "MPI_Isend", count);
  });
}

void MpiTransfer::receive(const Elements& data, int source, int tag) {
  const MPI_Datatype type = mpi_type(data.type);
  for_each_chunk(data.count, [&](Index begin, int count) {
    group_.check(MPI_Irecv(slice(data, begin, count).data, count, type, source, tag, group_.comm, request()),
                 "MPI_Irecv", count);
    expected_.back() = {type, count, source};
  });
}

void* MpiTransfer::scratch(Index bytes) {
  scratch_.push_back(std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes)));
  return scratch_.back().get();
}

void MpiTransfer::wait() {
  if (is_complete()) return;
  std::vector<MPI_Status> statuses(requests_.size());
  const int code = MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), statuses.data());
  check_statuses(code, statuses, "MPI_Waitall");
  complete();
}

bool MpiTransfer::test() {
  if (is_complete()) return true;
  std::vector<MPI_Status> statuses(requests_.size());
  int all_done = 0;
  const int code =
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &all_done, statuses.data());
  if (code == MPI_SUCCESS && all_done == 0) return false;
  check_statuses(code, statuses, "MPI_Testall");
  complete();
  return true;
}

void MpiTransfer::complete() {
  requests_.clear();
  expected_.clear();
  if (const auto step = std::exchange(last_step_, nullptr)) step();
}

void MpiTransfer::check_statuses(int code, const std::vector<MPI_Status>& statuses, const char* call) const {
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const auto& [type, count, source] = expected_[i];
    if (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_ERR_PENDING) {
      group_.check(statuses[i].MPI_ERROR, count < 0 ? call : "MPI_Irecv", std::max(count, 0));
    }
    if (code != MPI_SUCCESS || count < 0) continue;
    int received = 0;
    group_.check(MPI_Get_count(&statuses[i], type, &received), "MPI_Get_count", count);
    require<CommunicationError>(received == count, "rank ", group_.rank, " expected ", count,
                                " elements from rank ", source, " but got ", received,
                                "; the counts that both ranks give must agree");
  }
  group_.check(code, call, static_cast<Index>(statuses.size()));
}

}  // namespace gridlops
