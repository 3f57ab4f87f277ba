// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gridlops/comm/communicator.hpp"

namespace gridlops::bench {

// One-sided operations. The library uses windows for the panels of products, but offers none to its users, so
// the benchmark calls MPI itself.

/// Throws CommunicationError with MPI's text if a call has failed.
void check_mpi(int code, const char* call);

/// A communicator of MPI whose calls return errors. Move-only.
class MpiRanks {
 public:
  /// Splits all processes of the job by colour (collective over them). Without a colour, get() is
  /// MPI_COMM_NULL.
  explicit MpiRanks(std::optional<int> color);
  ~MpiRanks();
  MpiRanks(MpiRanks&& other) noexcept : comm_(std::exchange(other.comm_, MPI_COMM_NULL)) {}
  MpiRanks& operator=(MpiRanks&&) = delete;

  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// How a window gets its memory.
enum class WindowKind {
  allocated,  ///< by MPI
  dynamic,    ///< attached later, as the library does for products
  shared      ///< by MPI; ranks of a machine address all of it
};

/// Memory of each rank that all ranks can access (collective). The user begins and ends the access epochs.
class Window {
 public:
  /// `ranks` and `comm` have the same ranks. All of them throw the same error: OutOfMemory, or
  /// CommunicationError if MPI refuses. If one rank lacks memory inside MPI's own call, the others may wait
  /// in it for ever.
  Window(Communicator& ranks, MPI_Comm comm, Index bytes, WindowKind kind);
  /// Collective. While an exception unwinds the stack, it does nothing: the window then stays until the job
  /// ends.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  MPI_Win handle() const { return window_; }
  std::byte* memory() const { return memory_; }
  /// The displacement of a rank's memory in calls of MPI.
  MPI_Aint displacement(int rank) const { return displacements_[static_cast<std::size_t>(rank)]; }
  /// The memory of a rank of the same machine. Only for WindowKind::shared.
  std::byte* memory_of(int rank) const;

 private:
  void make(MPI_Comm comm, MPI_Aint size);

  WindowKind kind_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* memory_ = nullptr;
  std::unique_ptr<std::byte[]> attached_;
  std::vector<MPI_Aint> displacements_;
};

/// While it lives, this rank may access the memory of all ranks.
class AccessToAll {
 public:
  explicit AccessToAll(const Window& window) : window_(window.handle()) {
    check_mpi(MPI_Win_lock_all(MPI_MODE_NOCHECK, window_), "MPI_Win_lock_all");
  }
  ~AccessToAll();
  AccessToAll(const AccessToAll&) = delete;
  AccessToAll& operator=(const AccessToAll&) = delete;

 private:
  MPI_Win window_;
};

}  // namespace gridlops::bench
