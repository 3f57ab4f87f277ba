// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/base/export.hpp"
#include "gridlops/comm/communicator.hpp"

namespace gridlops {

/// A Communicator over MPI, on host memory, with the ranks of comm (collective over comm). It duplicates comm
/// and does not otherwise touch it. The caller finalises MPI, after this communicator is gone.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm);

/// The names of the transports for matrices in host memory. All are complete communicators over MPI. They
/// differ in how large data moves:
///
///   mpi        MPI moves it
///   chain      large broadcasts are pipelined along a chain of ranks
///   one-sided  products get blocks of other ranks through windows of MPI, without a call of the owner
///   shared     products read blocks of other ranks in place; for ranks of one machine
///   mixed      communicators that are split off are "shared" where their ranks are on one machine; others
///              send messages, and are "mixed" again
GRIDLOPS_EXPORT const std::vector<std::string>& host_transports();

/// From so many bytes on, among so many ranks, a chain was faster than MPI's own broadcast
/// (docs/performance-notes.md, "Broadcasts"); `gridlops-bench messages` finds where it is on another machine.
inline constexpr Index chain_least_bytes = Index{16} << 20;
inline constexpr int chain_least_ranks = 3;

/// Above so many bytes of the whole operand, and on so few ranks, a rank that reduces gets every other rank's
/// operand in one message and sums them itself: in reduce_scatter, and in a reduce that is non-blocking or of
/// "chain".
inline constexpr Index reduce_by_messages_above_bytes = Index{64} << 10;
inline constexpr int reduce_by_messages_most_ranks = 4;

/// A communicator of the same ranks with one of these transports (collective over comm, an MPI communicator).
/// "auto" stands for shared where all ranks can read each other's memory, for mixed where those of one
/// machine can and some machine has several of them, and otherwise for mpi; transport() tells which. Throws
/// alike on all ranks: UsageError if there is no such transport, or the ranks are where it is impossible;
/// CommunicationError if MPI or the system refuses it. Broadcasts of "chain" are pipelined from `chain_bytes`
/// on, the same on all ranks.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_host_communicator(Communicator& comm,
                                                                     const std::string& transport,
                                                                     Index chain_bytes = chain_least_bytes);

/// MPI's names of a type and of a reduction, for the calls that a program makes beside the library's.
GRIDLOPS_EXPORT MPI_Datatype mpi_type(ElementType type);
GRIDLOPS_EXPORT MPI_Op mpi_op(ReduceOp op);

/// What a session does when its ranks wait for each other in vain.
enum class WhenStuck {
  end_job,     ///< ends all processes of MPI_COMM_WORLD, with status 75
  throw_error  ///< each rank that waits throws CommunicationError, with status 75; the session is of no more
               ///< use
};

/// Tells the ranks that wait for this one that it is at work. A rank that computes for longer than
/// GRIDLOPS_TIMEOUT between communications in code of the caller's, as in an operator, must call this
/// meanwhile, at least four times in that time. What the library computes, reads and writes needs no such
/// call; in a program that started MPI with less than MPI_THREAD_SERIALIZED it does, and cannot have it. Not
/// collective. It takes the time of reading a clock; now and then it answers messages, so only the thread
/// that communicates may call it. Throws, or ends the job, if the others have given up. Without a session it
/// does nothing.
GRIDLOPS_EXPORT void keep_alive();

/// Starts MPI, and ends it when the last rank is done. Every process makes one, in main.
///
/// While a session lives, an exception that leaves main, or that the terminate handler meets elsewhere,
/// prints rank, host, type, message and what the rank was communicating, and ends the whole job with the
/// error's exit status (70 for exceptions of other libraries). A rank that reaches the end of its session
/// alone, for example because it swallowed an exception, waits there for the others. Where MPI itself crashes
/// while it ends, a line says so, and that all work was done.
///
/// While a session lives, no wait of this library lasts for ever. When no rank has got on for
/// GRIDLOPS_TIMEOUT seconds (default 600; 0 for no limit), each rank that waits says who is silent and in
/// which operation every other one is, and the job ends with status 75. A rank gets on when it communicates
/// through this library, or calls keep_alive(). After every minute in which none does, one rank says as much.
class GRIDLOPS_EXPORT MpiSession {
 public:
  /// Collective over all processes of the job. Where MPI runs already, whoever started it also ends it, and
  /// ranks that wait in vain throw. argc and argv may be null.
  MpiSession(int* argc, char*** argv);
  /// A session of the ranks of comm only, in a program that has started MPI and ends it (collective over
  /// comm, which is duplicated and not otherwise touched).
  explicit MpiSession(MPI_Comm comm, WhenStuck when_stuck = WhenStuck::throw_error);
  /// Collective; waits for all ranks.
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& world() { return *world_; }

  /// Runs body and returns what it returns. An exception on any rank ends the job as described above.
  int run(const std::function<int()>& body);

 private:
  void begin(MPI_Comm comm, WhenStuck when_stuck);

  std::unique_ptr<Communicator> world_;
  bool owns_mpi_ = false;
  bool ends_job_ = true;
};

}  // namespace gridlops
