// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gridlops/communicator.hpp"
#include "gridlops/export.hpp"

namespace gridlops {

/// A Communicator over MPI, on host memory, with the ranks of comm, which it duplicates (collective over
/// comm) and does not otherwise touch: MPI stays the caller's to finalise, after this communicator is gone.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_mpi_communicator(MPI_Comm comm);

/// The transports for matrices in host memory. All are complete communicators over MPI; they differ in how
/// large data moves:
///
///   mpi        as MPI moves it
///   chain      large broadcasts go from rank to rank in pieces
///   one-sided  products get blocks of other ranks from windows of MPI; no call of the owner answers
///   shared     products read blocks of other ranks in place; ranks of one machine
///   mixed      what is split off is "shared" where its ranks are on one machine, and otherwise "mixed"
///   again,
///              and sends messages: a grid, its rows and its columns may so be of either kind
GRIDLOPS_EXPORT const std::vector<std::string>& host_transports();

/// The same ranks with one of these transports, or "auto": shared where all ranks can read each other's
/// memory, mixed where those of one machine can and some machine has several, otherwise mpi (collective over
/// comm, an MPI communicator). transport() has the name. Throws alike
/// on all ranks: UsageError if there is no such transport or the ranks are where it is impossible,
/// CommunicationError if MPI or the system refuses it.
GRIDLOPS_EXPORT std::unique_ptr<Communicator> make_host_communicator(Communicator& comm,
                                                                     const std::string& transport);

/// Starts MPI, and ends it when the last rank is done. One per process, in main, on all ranks.
///
/// While a session lives, an exception that leaves main, or that the terminate handler meets elsewhere,
/// prints rank, host, type, message and what the rank was communicating, and ends the whole job with the
/// error's exit status (70 for exceptions that are not ours). A rank that reaches the end of its session
/// alone, because it swallowed an exception say, waits for the others GRIDLOPS_TIMEOUT seconds (default 600),
/// then ends the job with status 75 and says so: MPI_Finalize alone would hang every rank for ever.
class GRIDLOPS_EXPORT MpiSession {
 public:
  /// Collective over all processes of the job. Where MPI runs already the session leaves its end to whoever
  /// started it. argc and argv may be null.
  MpiSession(int* argc, char*** argv);
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  Communicator& world() { return *world_; }

  /// Runs body and returns what it returns; an exception on any rank ends the job as described above.
  int run(const std::function<int()>& body);

 private:
  std::unique_ptr<Communicator> world_;
  bool owns_mpi_ = false;
};

}  // namespace gridlops
