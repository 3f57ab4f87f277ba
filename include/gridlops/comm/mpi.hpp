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

/// Makes a Communicator over MPI, for host memory, with the ranks of comm (collective over comm). It
/// duplicates comm and does not otherwise touch it. The caller finalises MPI after destroying this
/// communicator.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm);

/// The names of the transports for matrices in host memory. All are complete communicators over MPI. They
/// differ in how they move large data:
///
///   mpi        MPI moves it
///   chain      large broadcasts are pipelined along a chain of ranks
///   one-sided  products get blocks of other ranks through MPI windows; the owner makes no call
///   shared     products read blocks of other ranks in place; all ranks must be on one machine
///   mixed      a communicator made by split() is "shared" if its ranks are on one machine; any other sends
///              messages, and is "mixed" itself
GRIDLOPS_EXPORT const std::vector<std::string>& host_transports();

/// From this many bytes, on at least this many ranks, a chain was faster than MPI's own broadcast
/// (docs/performance-notes.md, "Broadcasts"). `gridlops-bench messages` finds the limits of another machine.
inline constexpr Index chain_least_bytes = Index{16} << 20;
inline constexpr int chain_least_ranks = 3;

/// If the whole operand has more than this many bytes, and there are at most this many ranks, a rank that
/// reduces gets every other rank's operand in one message and sums them itself. This applies to
/// reduce_scatter, and to a reduce that is non-blocking or on "chain".
inline constexpr Index reduce_by_messages_above_bytes = Index{64} << 10;
inline constexpr int reduce_by_messages_most_ranks = 4;

/// Makes a communicator of the same ranks with one of these transports (collective over comm, an MPI
/// communicator). "auto" means shared if all ranks can read each other's memory; mixed if only the ranks of
/// one machine can, and some machine has several of them; otherwise mpi. transport() tells which. Throws on
/// all ranks alike: UsageError if there is no such transport, or if it is impossible for these ranks;
/// CommunicationError if MPI or the system refuses it. "chain" pipelines broadcasts of at least
/// `chain_bytes`, which must be the same on all ranks.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_host_communicator(Communicator& comm,
                                                                     const std::string& transport,
                                                                     Index chain_bytes = chain_least_bytes);

/// MPI's names of a type and of a reduction, for the calls that a program makes beside the library's.
GRIDLOPS_EXPORT MPI_Datatype mpi_type(ElementType type);
GRIDLOPS_EXPORT MPI_Op mpi_op(ReduceOp op);

/// The action of a session when its ranks wait for each other in vain.
enum class WhenStuck {
  end_job,     ///< ends all processes of MPI_COMM_WORLD, with status 75
  throw_error  ///< each waiting rank throws CommunicationError, with status 75; the session is then unusable
};

/// Tells the ranks that wait for this one that it is still working. If your own code, such as an operator,
/// computes for longer than GRIDLOPS_TIMEOUT without communicating, it must call this at least four times in
/// that period. The library's own computing, reading and writing need no such call. The exception is a
/// program that started MPI with less than MPI_THREAD_SERIALIZED: there they would need it, and the library
/// cannot make it. Not collective. A call takes as long as reading a clock. Now and then it also answers
/// messages, so only the thread that communicates may call it. Throws, or ends the job, if the other ranks
/// have given up. Does nothing without a session.
GRIDLOPS_EXPORT void keep_alive();

/// Starts MPI, and ends it when the last rank is done. Every process makes one session, in main.
///
/// While a session lives, an exception that leaves main, or that reaches the terminate handler elsewhere,
/// prints the rank, the host, the error's type and message, and what the rank was communicating. It then ends
/// the whole job with the error's exit status (70 for exceptions of other libraries). A rank that reaches the
/// end of its session alone, for example because it swallowed an exception, waits there for the others. If
/// MPI itself crashes while it ends, a line says so, and that all work was done.
///
/// While a session lives, no wait of this library lasts for ever. If no rank makes progress for
/// GRIDLOPS_TIMEOUT seconds (default 600; 0 for no limit), each waiting rank says which ranks are silent and
/// which operation every other rank is in, and the job ends with status 75. A rank makes progress when it
/// communicates through this library or calls keep_alive(). After every minute without progress, one rank
/// says so.
///
/// A session reads the environment variables of this library at its beginning. GRIDLOPS_TIMEOUT and
/// GRIDLOPS_CHECK of its lowest rank count for all. If on any rank a variable has a value that it cannot
/// have, a session that started MPI ends it: rank 0 says why, and all processes exit with status 2. Other
/// sessions do not begin: all ranks throw UsageError.
class GRIDLOPS_EXPORT MpiSession {
 public:
  /// Collective over all processes of the job. If MPI is already running, whoever started it also ends it,
  /// and ranks that wait in vain throw. argc and argv may be null.
  MpiSession(int* argc, char*** argv);
  /// A session of the ranks of comm only, for a program that starts and ends MPI itself (collective over
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
