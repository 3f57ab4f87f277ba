// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>
#include <unistd.h>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <array>
#include <optional>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/watchdog.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/buffer.hpp"

namespace gridlops {

namespace {

MPI_Comm duplicate_of(const MpiGroup& group) {
  MPI_Comm duplicate = MPI_COMM_NULL;
  BlockingCall(group).run("MPI_Comm_dup", 0, MPI_Comm_dup, group.comm, &duplicate);
  return duplicate;
}

/// Whether all ranks belong to a session with a limit.
bool are_all_watched(const MpiGroup& group) {
  int watched = Watchdog::current() != nullptr ? 1 : 0;
  group.await("MPI_Iallreduce", 1, MPI_Iallreduce, MPI_IN_PLACE, &watched, 1, MPI_INT, MPI_MIN, group.comm);
  return watched != 0;
}

/// The ranks of a group that are on this rank's machine.
struct Machine {
  int first_rank = 0, ranks = 1;
};
Machine my_machine(const MpiGroup& group) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  BlockingCall(group).run("MPI_Comm_split_type", 0, MPI_Comm_split_type, group.comm, MPI_COMM_TYPE_SHARED,
                          group.rank, MPI_INFO_NULL, &neighbours);
  MPI_Group all = MPI_GROUP_NULL, near = MPI_GROUP_NULL;
  MPI_Comm_group(group.comm, &all);
  MPI_Comm_group(neighbours, &near);
  Machine machine;
  const int first = 0;
  MPI_Group_translate_ranks(near, 1, &first, all, &machine.first_rank);
  MPI_Group_size(near, &machine.ranks);
  MPI_Group_free(&near);
  MPI_Group_free(&all);
  group.check(MPI_Comm_free(&neighbours), "MPI_Comm_free", 0);
  return machine;
}

/// How many ranks the machine with the fewest (the most) ranks has.
int ranks_on_a_machine(const Machine& mine, Communicator& comm, ReduceOp op) {
  std::array<std::int32_t, 1> ranks{mine.ranks};
  comm.all_reduce(ranks, op);
  return ranks[0];
}

/// Maps a page of every other rank and checks what that rank wrote there (collective). Throws on all ranks
/// alike if the system does not allow it.
void try_reading_each_other(Communicator& comm) {
  constexpr Index page = 1 << 16;
  const auto backend = make_shared_host_backend();
  std::optional<Buffer<Index>> memory;
  SharedAddress address;
  attempt(comm, [&] {
    memory.emplace(backend, page / Index{sizeof(Index)});
    *memory->data() = comm.rank();
    address = shared_address(*backend, memory->data());
  });
  const std::vector<SharedAddress> addresses = gather_addresses(comm, address);
  PeerMemory peers(comm);
  attempt(comm, [&] {
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto found = *reinterpret_cast<const Index*>(peers.at(rank, addresses[at(rank)]));
      require<CommunicationError>(found == rank, "the memory of rank ", rank, " reads ", found,
                                  " where it wrote ", rank, "; use the transport mpi");
    }
  });
}

/// Throws UsageError or CommunicationError with the reason, on all ranks alike, if the ranks of one machine
/// cannot share memory.
void require_shared_memory(const Machine& machine, Communicator& comm) {
  auto neighbours = comm.split(machine.first_rank, comm.rank());
  try {
    attempt(comm, [&] { try_reading_each_other(*neighbours); });
  } catch (const Error& error) {
    // While an exception unwinds the stack, a communicator is not freed, because other ranks may be
    // elsewhere. Here all ranks throw, so it can be.
    if (error.known_to() == KnownTo::all_ranks) neighbours = nullptr;
    throw;
  }
}

void require_one_machine(const Machine& machine, Communicator& comm) {
  const int fewest = ranks_on_a_machine(machine, comm, ReduceOp::min);
  require<UsageError>(fewest == comm.size(), "the ", comm.size(), " ranks are on several machines, one with ",
                      fewest, " of them, and cannot all share memory; use the transport mixed");
}

/// The name of the fastest transport.
std::string fastest_transport(const Machine& machine, Communicator& comm) {
  if (ranks_on_a_machine(machine, comm, ReduceOp::max) == 1) return "mpi";
  try {
    require_shared_memory(machine, comm);
  } catch (const Error& error) {
    if (error.known_to() == KnownTo::one_rank) throw;
    return "mpi";
  }
  return ranks_on_a_machine(machine, comm, ReduceOp::min) == comm.size() ? "shared" : "mixed";
}

MpiCommunicator& of_mpi(Communicator& comm, const char* what) {
  auto* const mpi = dynamic_cast<MpiCommunicator*>(&comm);
  require<UsageError>(mpi != nullptr, "a communicator of the transport '", comm.transport(), "' has no ",
                      what);
  return *mpi;
}

}  // namespace

const std::vector<std::string>& host_transports() {
  static const std::vector<std::string> names{"mpi", "chain", "one-sided", "shared", "mixed"};
  return names;
}

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm) {
  // Ranks of a session watch the others until all have come, whether they belong to the session or not.
  MpiGroup callers{comm, 0, 1, true};
  MPI_Comm_rank(comm, &callers.rank);
  MPI_Comm_size(comm, &callers.size);
  callers.comm = duplicate_of(callers);
  return std::make_unique<MpiCommunicator>(callers.comm, MpiContext{.is_watched = are_all_watched(callers)});
}

std::unique_ptr<Communicator> make_host_communicator(Communicator& comm, const std::string& transport,
                                                     Index chain_bytes) {
  auto* const mpi = dynamic_cast<MpiCommunicator*>(&comm);
  require<UsageError>(mpi != nullptr, "the transport ", transport,
                      " needs the ranks of an MPI communicator, not of '", comm.transport(), "'");
  const std::vector<std::string>& known = host_transports();
  require<UsageError>(transport == "auto" || std::find(known.begin(), known.end(), transport) != known.end(),
                      "there is no transport '", transport,
                      "' for host memory; there are auto, mpi, chain, one-sided, shared, mixed");
  const MpiGroup& group = mpi->group();
  MpiContext context{.transport = transport, .is_watched = group.is_watched};
  if (transport == "auto" || transport == "shared" || transport == "mixed") {
    const Machine machine = my_machine(group);
    if (transport == "auto") {
      context.transport = fastest_transport(machine, comm);
    } else {
      if (transport == "shared") require_one_machine(machine, comm);
      require_shared_memory(machine, comm);
    }
    if (context.transport == "mixed") context.machine = machine.first_rank;
  }
  if (transport == "chain") context.chains = std::make_shared<ChainBroadcasts>(chain_bytes);
  if (transport == "one-sided") context.window = mpi->shared_mpi_window();
  return std::make_unique<MpiCommunicator>(duplicate_of(group), std::move(context));
}

RmaWindow& rma_window_of(Communicator& comm) { return of_mpi(comm, "windows").rma_window(); }

SharedWindow& shared_window_of(Communicator& comm) { return of_mpi(comm, "shared memory").shared_window(); }

int rank_on_host(Communicator& comm) {
  using Name = std::array<char, 256>;
  Name mine{};
  gethostname(mine.data(), mine.size() - 1);
  std::vector<Name> names(static_cast<std::size_t>(comm.size()));
  comm.all_gather(mine, Elements(names.data()->data(), static_cast<Index>(names.size() * mine.size())));
  int before = 0;
  for (int rank = 0; rank < comm.rank(); ++rank)
    if (names[at(rank)] == mine) ++before;
  return before;
}

// This query is an extension of Open MPI that other libraries have adopted. The macro only describes the
// header; the library at run time may differ.
bool mpi_claims_device_memory() {
#ifdef MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

}  // namespace gridlops
