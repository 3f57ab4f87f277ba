// SPDX-License-Identifier: BSD-3-Clause
#include "comm/peer_board.hpp"

#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>

#include <new>
#include <optional>
#include <utility>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/mpi_call.hpp"
#include "comm/operation_record.hpp"
#include "comm/waiting_time.hpp"
#include "gridlops/error.hpp"
#include "local/shared_file.hpp"

namespace gridlops {

// The page has a file of its own: the others keep their mappings when this rank, which may be ahead of them,
// is done with it. Once it is mapped by all the file needs no descriptor.
PeerBoard::PeerBoard(Communicator& comm) : comm_(comm), memory_(comm) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  std::optional<SharedFile> file;
  SharedPlace place;
  succeed_together(comm, [&] {
    file.emplace();
    const Index begin = SharedFile::first_free();
    void* const page = file->map(begin, page_bytes());
    require<OutOfMemory>(page != nullptr, "there is no memory for a page of ", page_bytes(), " bytes");
    mine_ = new (page) Page;
    place = {file->descriptor(), file->serial(), file->bytes(), begin};
  });
  const std::vector<SharedPlace> places = all_places(comm, place);
  succeed_together(comm, [&] {
    for (int rank = 0; rank < comm.size(); ++rank) {
      pages_.push_back(
          rank == comm.rank() ? mine_ : reinterpret_cast<const Page*>(memory_.at(rank, places[at(rank)])));
    }
  });
}

PeerBoard::~PeerBoard() { munmap(mine_, static_cast<std::size_t>(page_bytes())); }

Index PeerBoard::page_bytes() {
  const Index unit = SharedFile::first_free();
  return (Index{sizeof(Page)} + unit - 1) / unit * unit;
}

SharedPlace PeerBoard::place_in(const Backend& backend, const void* data) {
  const SharedPlace place = backend.shared_place(data);
  require<UsageError>(place.descriptor >= 0, "the memory of the backend '", backend.name(),
                      "' cannot be read by other ranks; make it with make_shared_host_backend()");
  return place;
}

PeerBoard::Round PeerBoard::show_place(const SharedPlace& place, Index rows, Index cols, Index stride) {
  ++round_;
  mine_->blocks[round_ % 2] = {place, rows, cols, stride};
  mine_->shown.store(round_, std::memory_order_release);
  return round_;
}

const PeerBoard::Shown& PeerBoard::await_shown(int rank) {
  const Page& page = *pages_[at(rank)];
  await(page.shown, round_, rank);
  return page.blocks[round_ % 2];
}

void PeerBoard::done_reading() { mine_->read.store(round_, std::memory_order_release); }

void PeerBoard::await_reader(int rank, Round round) { await(pages_[at(rank)]->read, round, rank); }

namespace {

/// Whether a flag reaches the round soon; gives way to other ranks on the same core unless it spins.
bool reached(const std::atomic<PeerBoard::Round>& flag, PeerBoard::Round round, bool spins) {
  constexpr int turns = 1000;
  for (int turn = 0; turn < turns; ++turn) {
    if (flag.load(std::memory_order_acquire) >= round) return true;
    if (!spins) sched_yield();
  }
  return false;
}

}  // namespace

// Lets messages under way advance, for which the other rank may be waiting.
void PeerBoard::await(const std::atomic<Round>& flag, Round round, int rank) const {
  if (flag.load(std::memory_order_acquire) >= round) return;
  const WaitingTime time(*comm_.traffic_account());
  OperationRecord& record = last_operation();
  const OperationRecord before = std::exchange(
      record, {OperationRecord::State::running, CommOperation::get, 0, rank, comm_.rank(), comm_.size()});
  for (bool is_patient = true; !reached(flag, round, is_patient); is_patient = false) {
    int found = 0;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    MpiGroup{MPI_COMM_SELF, comm_.rank(), comm_.size()}.check(code, "MPI_Iprobe", 0);
  }
  record = before;
}

}  // namespace gridlops
