// SPDX-License-Identifier: BSD-3-Clause
#include "comm/mpi/shared_window.hpp"

#include <mpi.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <optional>

#include "base/lone_error.hpp"
#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/call_account.hpp"
#include "comm/failure/watched_wait.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops {

std::vector<SharedAddress> gather_addresses(Communicator& comm, const SharedAddress& mine) {
  std::array<Index, 4> own{mine.descriptor, mine.serial, mine.file_bytes, mine.offset};
  std::vector<Index> all(own.size() * static_cast<std::size_t>(comm.size()));
  comm.all_gather(own, all);
  std::vector<SharedAddress> addresses;
  for (std::size_t k = 0; k < all.size(); k += own.size())
    addresses.push_back({all[k], all[k + 1], all[k + 2], all[k + 3]});
  return addresses;
}

PeerMemory::PeerMemory(Communicator& comm)
    : processes_(static_cast<std::size_t>(comm.size())), mappings_(processes_.size()) {
  std::array<Index, 1> mine{getpid()};
  comm.all_gather(mine, processes_);
}

PeerMemory::~PeerMemory() {
  for (const std::vector<Mapping>& of_rank : mappings_)
    for (const Mapping& mapping : of_rank) munmap(const_cast<void*>(mapping.memory), mapping.bytes);
}

// A file at least doubles in size each time it grows, so this rank maps it only a few times.
const std::byte* PeerMemory::at(int rank, const SharedAddress& address) {
  std::vector<Mapping>& of_rank = mappings_[gridlops::at(rank)];
  const auto fits = [&](const Mapping& mapping) {
    return mapping.serial == address.serial && address.file_bytes <= static_cast<Index>(mapping.bytes);
  };
  auto found = std::find_if(of_rank.begin(), of_rank.end(), fits);
  if (found == of_rank.end()) {
    const void* const memory = map_file_of(processes_[gridlops::at(rank)], address);
    found = of_rank.insert(found, {address.serial, memory, static_cast<std::size_t>(address.file_bytes)});
  }
  return static_cast<const std::byte*>(found->memory) + address.offset;
}

// The page has a file of its own. This rank may be ahead and unmap its page, but the others keep their
// mappings. Once all have mapped the file, it needs no descriptor.
SharedWindow::SharedWindow(Communicator& comm) : comm_(comm), memory_(comm) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  std::optional<SharedFile> file;
  SharedAddress address;
  attempt(comm, [&] {
    file.emplace();
    const Index begin = SharedFile::first_free();
    void* const page = file->map(begin, page_bytes());
    require<OutOfMemory>(page != nullptr, "there is no memory for a page of ", page_bytes(), " bytes");
    mine_ = new (page) Page{comm.rank()};
    address = file->address(begin);
  });
  const std::vector<SharedAddress> addresses = gather_addresses(comm, address);
  attempt(comm, [&] {
    for (int rank = 0; rank < comm.size(); ++rank) {
      pages_.push_back(
          rank == comm.rank() ? mine_ : reinterpret_cast<const Page*>(memory_.at(rank, addresses[at(rank)])));
      const int found = pages_.back()->owner;
      require<CommunicationError>(found == rank, "the memory of rank ", rank, " reads ", found,
                                  " where it wrote ", rank, "; use the transport mpi");
    }
  });
}

SharedWindow::~SharedWindow() { munmap(mine_, static_cast<std::size_t>(page_bytes())); }

Index SharedWindow::page_bytes() {
  const Index unit = SharedFile::first_free();
  return (Index{sizeof(Page)} + unit - 1) / unit * unit;
}

SharedAddress SharedWindow::address_in(const Backend& backend, const void* data) {
  const SharedAddress address = shared_address(backend, data);
  require_here<UsageError>(address.is_shared(), "the memory of the backend '", backend.name(),
                           "' cannot be read by other ranks; make it with make_shared_host_backend()");
  return address;
}

SharedWindow::Round SharedWindow::publish(const SharedAddress& address, Index rows, Index cols,
                                          Index stride) {
  ++round_;
  mine_->blocks[round_ % 2] = {address, rows, cols, stride};
  mine_->published.store(round_, std::memory_order_release);
  return round_;
}

const SharedWindow::Published& SharedWindow::wait_for_block(int rank) {
  const Page& page = *pages_[at(rank)];
  wait_for(page.published, round_, rank);
  return page.blocks[round_ % 2];
}

void SharedWindow::count_read(Index bytes) { CallAccount(comm_).count_read(bytes); }

void SharedWindow::finish_reading() { mine_->read.store(round_, std::memory_order_release); }

void SharedWindow::wait_for_reader(int rank, Round round) { wait_for(pages_[at(rank)]->read, round, rank); }

// Spins for a while. Then it yields the core to other ranks, and MPI advances pending messages between polls:
// the other rank may be waiting for one.
void SharedWindow::wait_for(const std::atomic<Round>& flag, Round round, int rank) const {
  if (flag.load(std::memory_order_acquire) >= round) return;
  const OperationRegion region("wait");
  const WaitingTime time(CallAccount(comm_).traffic());
  flight_recorder().begin({OperationRecord::State::running, CommOperation::get, 0, 0, rank, comm_.rank(),
                           comm_.size(), OperationRecord::Clock::now()});
  wait_until([&, spins = 1000]() mutable {
    if (flag.load(std::memory_order_acquire) >= round) return true;
    if (--spins >= 0) return false;
    sched_yield();
    int found = 0;
    const int code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
    MpiGroup{MPI_COMM_SELF, comm_.rank(), comm_.size()}.check(code, "MPI_Iprobe", 0);
    return false;
  });
  CallAccount::returned();
}

}  // namespace gridlops
