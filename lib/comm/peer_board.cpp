// SPDX-License-Identifier: BSD-3-Clause
#include "comm/peer_board.hpp"

#include <mpi.h>
#include <sched.h>

#include <new>
#include <utility>

#include "base/message.hpp"
#include "comm/mpi_call.hpp"
#include "comm/operation_record.hpp"
#include "comm/waiting_time.hpp"
#include "gridlops/error.hpp"

namespace gridlops {

namespace {

constexpr Index page_bytes = 1 << 16;  // enough to be shared, whatever the size of the system's pages

}  // namespace

PeerBoard::PeerBoard(Communicator& comm, const std::shared_ptr<Backend>& backend)
    : comm_(comm), backend_(backend), memory_(comm) {
  static_assert(sizeof(Page) <= page_bytes && std::atomic<std::uint64_t>::is_always_lock_free);
  SharedPlace place;
  succeed_together(comm, [&] {
    page_memory_ = Buffer<std::byte>(backend, page_bytes);
    mine_ = new (page_memory_.data()) Page;
    place = backend->shared_place(mine_);
    require<UsageError>(place.descriptor >= 0, "the memory of the backend '", backend->name(),
                        "' cannot be read by other ranks; make it with make_shared_host_backend()");
  });
  const std::vector<SharedPlace> places = all_places(comm, place);
  // A page stays until all have mapped it.
  succeed_together(comm, [&] {
    for (int rank = 0; rank < comm.size(); ++rank) {
      pages_.push_back(rank == comm.rank() ? mine_
                                           : reinterpret_cast<const Page*>(
                                                 memory_.at(rank, places[static_cast<std::size_t>(rank)])));
    }
  });
}

PeerBoard::Round PeerBoard::show_bytes(const void* data, Index rows, Index cols, Index stride) {
  ++round_;
  mine_->blocks[round_ % 2] = {data == nullptr ? SharedPlace{} : backend_->shared_place(data), rows, cols,
                               stride};
  mine_->shown.store(round_, std::memory_order_release);
  return round_;
}

const PeerBoard::Shown& PeerBoard::await_shown(int rank) {
  const Page& page = *pages_[static_cast<std::size_t>(rank)];
  await(page.shown, round_, rank);
  return page.blocks[round_ % 2];
}

void PeerBoard::done_reading() { mine_->read.store(round_, std::memory_order_release); }

void PeerBoard::await_reader(int rank, Round round) {
  await(pages_[static_cast<std::size_t>(rank)]->read, round, rank);
}

// Gives way to other ranks on the same core, and lets messages under way advance, for which the other rank
// may be waiting.
void PeerBoard::await(const std::atomic<Round>& flag, Round round, int rank) const {
  constexpr int patience = 1000;
  if (flag.load(std::memory_order_acquire) >= round) return;
  const WaitingTime time(*comm_.traffic_account());
  OperationRecord& record = last_operation();
  const OperationRecord before = std::exchange(
      record, {OperationRecord::State::running, CommOperation::get, 0, rank, comm_.rank(), comm_.size()});
  for (int turn = 1; flag.load(std::memory_order_acquire) < round; ++turn) {
    if (turn < patience) continue;
    sched_yield();
    if (turn % patience != 0) continue;
    int found = 0;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    MpiGroup{MPI_COMM_SELF, comm_.rank(), comm_.size()}.check(code, "MPI_Iprobe", 0);
  }
  record = before;
}

}  // namespace gridlops
