// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>
#include <unistd.h>

#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <array>

#include "base/message.hpp"
#include "base/numbers.hpp"
#include "comm/failure/watchdog.hpp"
#include "comm/mpi/chain_communicator.hpp"
#include "comm/mpi/one_sided_communicator.hpp"
#include "comm/mpi/shared_communicator.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "local/threads.hpp"

namespace gridlops {

namespace {

MpiGroup duplicate_of(const MpiGroup& group) {
  MpiGroup duplicate = group;
  BlockingCall(group).run("MPI_Comm_dup", 0, MPI_Comm_dup, group.comm, &duplicate.comm);
  return duplicate;
}

/// Whether all ranks belong to a session with a limit.
bool are_all_watched(const MpiGroup& group) {
  int watched = Watchdog::current() != nullptr ? 1 : 0;
  group.await("MPI_Iallreduce", 1, MPI_Iallreduce, MPI_IN_PLACE, &watched, 1, MPI_INT, MPI_MIN, group.comm);
  return watched != 0;
}

/// A communicator of the ranks of a group that are on this rank's machine. The caller frees it.
MPI_Comm neighbours_in(const MpiGroup& group) {
  MPI_Comm neighbours = MPI_COMM_NULL;
  BlockingCall(group).run("MPI_Comm_split_type", 0, MPI_Comm_split_type, group.comm, MPI_COMM_TYPE_SHARED,
                          group.rank, MPI_INFO_NULL, &neighbours);
  return neighbours;
}

/// The ranks of a group that are on this rank's machine.
struct Machine {
  int first_rank = 0, ranks = 1;
};
Machine my_machine(const MpiGroup& group) {
  MPI_Comm neighbours = neighbours_in(group);
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

/// The number of ranks on the machine with the fewest (op is min) or the most (max).
int ranks_on_a_machine(const Machine& mine, Communicator& comm, ReduceOp op) {
  std::array<std::int32_t, 1> ranks{mine.ranks};
  comm.all_reduce(ranks, op);
  return ranks[0];
}

/// Throws UsageError or CommunicationError with the reason, the same on all ranks, if the ranks of a machine
/// cannot share memory.
void require_shared_memory(const Machine& machine, Communicator& comm) {
  auto neighbours = comm.split(machine.first_rank, comm.rank());
  try {
    attempt(comm, [&] { SharedWindow trial(*neighbours); });
  } catch (const Error& error) {
    // While an exception unwinds the stack, the destructor does not free the communicator, because other
    // ranks may be elsewhere. Here all ranks throw, so all can free it.
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

template <class Transport>
auto& window_of(Communicator& comm, const char* what) {
  auto* const found = dynamic_cast<Transport*>(&comm);
  require<UsageError>(found != nullptr, "a communicator of the transport '", comm.transport(), "' has no ",
                      what);
  return found->window();
}

}  // namespace

const std::vector<std::string>& host_transports() {
  static const std::vector<std::string> names{"mpi", "chain", "one-sided", "shared", "mixed"};
  return names;
}

std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm) {
  // Ranks of a session watch until all others have come, even those outside the session.
  MpiGroup group = duplicate_of(MpiGroup::of(comm, true));
  group.is_watched = are_all_watched(group);
  return std::make_unique<MpiCommunicator>(group, std::make_shared<Traffic>());
}

std::unique_ptr<Communicator> make_host_communicator(Communicator& comm, const std::string& transport,
                                                     Index chain_bytes) {
  auto* const mpi = dynamic_cast<MpiCommunicator*>(&comm);
  require<UsageError>(mpi != nullptr, "the transport ", transport,
                      " needs the ranks of an MPI communicator, not of '", comm.transport(), "'");
  const MpiGroup& group = mpi->group();
  const auto traffic = std::make_shared<Traffic>();
  if (transport == "mpi") return std::make_unique<MpiCommunicator>(duplicate_of(group), traffic);
  if (transport == "chain")
    return std::make_unique<ChainCommunicator>(duplicate_of(group), traffic,
                                               std::make_shared<ChainBroadcasts>(chain_bytes));
  if (transport == "one-sided") {
    std::shared_ptr<MpiWindow>& window = mpi->kept_window();
    if (window == nullptr) window = open_window(comm, group);
    return std::make_unique<OneSidedCommunicator>(duplicate_of(group), traffic, window);
  }
  require<UsageError>(transport == "auto" || transport == "shared" || transport == "mixed",
                      "there is no transport '", transport,
                      "' for host memory; there are auto, mpi, chain, one-sided, shared, mixed");
  const Machine machine = my_machine(group);
  const std::string chosen = transport == "auto" ? fastest_transport(machine, comm) : transport;
  if (transport == "shared") require_one_machine(machine, comm);
  if (transport != "auto") require_shared_memory(machine, comm);
  if (chosen == "mpi") return std::make_unique<MpiCommunicator>(duplicate_of(group), traffic);
  if (chosen == "shared") return std::make_unique<SharedCommunicator>(duplicate_of(group), traffic);
  return std::make_unique<SharedCommunicator>(duplicate_of(group), traffic, machine.first_rank);
}

RmaWindow& rma_window_of(Communicator& comm) { return window_of<OneSidedCommunicator>(comm, "windows"); }

SharedWindow& shared_window_of(Communicator& comm) {
  return window_of<SharedCommunicator>(comm, "shared memory");
}

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

void share_processors_of_machine(Communicator& comm) {
  const MpiGroup& group = dynamic_cast<MpiCommunicator&>(comm).group();
  MPI_Comm neighbours = neighbours_in(group);
  const std::vector<int> mine = usable_processors();
  std::vector<int> ranks = mine;  // that may use each processor
  const auto count = static_cast<int>(ranks.size());
  MpiGroup::of(neighbours, group.is_watched)
      .await("MPI_Iallreduce", count, MPI_Iallreduce, MPI_IN_PLACE, ranks.data(), count, MPI_INT, MPI_SUM,
             neighbours);
  group.check(MPI_Comm_free(&neighbours), "MPI_Comm_free", 0);
  share_processors(mine, ranks);
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
