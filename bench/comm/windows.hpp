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

// One-sided operations of MPI itself. The library gets panels of products by windows, and offers nothing of
// the kind to its users, so the benchmark makes these calls.

/// Throws CommunicationError with MPI's text if a call has failed.
void check_mpi(int code, const char* call);

/// A communicator of MPI whose calls return errors. Move-only.
class MpiRanks {
 public:
  /// Collective over all processes of the job, with MPI's meaning of a split; no colour: no ranks.
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
  shared      ///< by MPI; ranks of one machine address each other's
};

/// Memory of every rank that the others reach (collective). An access epoch of its user begins and ends it.
class Window {
 public:
  /// The ranks are those of comm. Throws alike on all of them: OutOfMemory, or CommunicationError if MPI
  /// refuses it. Where a rank lacks memory within MPI's own call, the others may wait in that for ever.
  Window(Communicator& ranks, MPI_Comm comm, Index bytes, WindowKind kind);
  /// Collective, but while an exception unwinds the stack: then it leaves the window to the end of the job.
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  MPI_Win handle() const { return window_; }
  std::byte* memory() const { return memory_; }
  /// What a call of MPI gives for the beginning of a rank's memory.
  MPI_Aint displacement(int rank) const { return displacements_[static_cast<std::size_t>(rank)]; }
  /// The memory of a rank of the same machine; for WindowKind::shared.
  std::byte* memory_of(int rank) const;

 private:
  void make(MPI_Comm comm, MPI_Aint size);

  WindowKind kind_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::byte* memory_ = nullptr;
  std::unique_ptr<std::byte[]> attached_;
  std::vector<MPI_Aint> displacements_;
};

/// Lets this rank access the others' memory, as long as it lives.
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
