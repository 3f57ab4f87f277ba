// SPDX-License-Identifier: BSD-3-Clause
#include "bench/comm/windows.hpp"

#include <fmt/format.h>

#include <array>
#include <exception>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/failure.hpp"

namespace gridlops::bench {

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw CommunicationError(fmt::format("{}: {}", call, text.data()));
}

MpiRanks::MpiRanks(std::optional<int> color) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  check_mpi(MPI_Comm_split(MPI_COMM_WORLD, color.value_or(MPI_UNDEFINED), rank, &comm_), "MPI_Comm_split");
  if (comm_ != MPI_COMM_NULL) MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
}

MpiRanks::~MpiRanks() {
  if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
}

Window::Window(Communicator& ranks, MPI_Comm comm, Index bytes, WindowKind kind) : kind_(kind) {
  const auto size = static_cast<MPI_Aint>(bytes);
  attempt(ranks, [&] {
    displacements_.resize(static_cast<std::size_t>(ranks.size()));
    // One byte more, because MPI may refuse to attach an empty block.
    if (kind == WindowKind::dynamic)
      attached_ = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes) + 1);
  });
  attempt(ranks, [&] { make(comm, size); });
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  MPI_Aint mine = 0;
  if (kind == WindowKind::dynamic) {
    memory_ = attached_.get();
    attempt(ranks, [&] { check_mpi(MPI_Win_attach(window_, memory_, size + 1), "MPI_Win_attach"); });
    MPI_Get_address(memory_, &mine);
  }
  check_mpi(MPI_Allgather(&mine, 1, MPI_AINT, displacements_.data(), 1, MPI_AINT, comm), "MPI_Allgather");
}

void Window::make(MPI_Comm comm, MPI_Aint size) {
  if (kind_ == WindowKind::shared) {
    check_mpi(MPI_Win_allocate_shared(size, 1, MPI_INFO_NULL, comm, &memory_, &window_),
              "MPI_Win_allocate_shared");
  } else if (kind_ == WindowKind::allocated) {
    check_mpi(MPI_Win_allocate(size, 1, MPI_INFO_NULL, comm, &memory_, &window_), "MPI_Win_allocate");
  } else {
    check_mpi(MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window_), "MPI_Win_create_dynamic");
  }
}

// Freeing is collective. While an exception unwinds the stack, the window and its memory stay until the job
// ends.
Window::~Window() {
  if (std::uncaught_exceptions() > 0) {
    static_cast<void>(attached_.release());
    return;
  }
  if (kind_ == WindowKind::dynamic) MPI_Win_detach(window_, memory_);
  MPI_Win_free(&window_);
}

AccessToAll::~AccessToAll() {
  if (std::uncaught_exceptions() == 0) MPI_Win_unlock_all(window_);
}

std::byte* Window::memory_of(int rank) const {
  MPI_Aint size = 0;
  int unit = 1;
  std::byte* memory = nullptr;
  check_mpi(MPI_Win_shared_query(window_, rank, &size, &unit, &memory), "MPI_Win_shared_query");
  return memory;
}

}  // namespace gridlops::bench
