// SPDX-License-Identifier: BSD-3-Clause
#include "comm/failure/job_end.hpp"

#include <mpi.h>
#include <unistd.h>

#include <csignal>

#include "base/message.hpp"

namespace gridlops {

namespace {

std::optional<int> named_rank;
volatile std::sig_atomic_t status_at_alarm = 0;

}  // namespace

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

void name_rank(std::optional<int> rank) { named_rank = rank; }

std::string line_of_rank(const std::string& text) {
  int rank = 0;
  if (!named_rank && mpi_is_running()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return message("gridlops: rank ", named_rank.value_or(rank), " on ", host, ": ", text, "\n");
}

void write_line(std::string_view line) noexcept {
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

void report(const std::string& text) { write_line(line_of_rank(text)); }

void warn(const std::string& text) { write_line(message("gridlops: warning: ", text, "\n")); }

// MPI_Abort may hang or return. Then the alarm, or the last line, ends the process.
void end_job(ExitStatus status) noexcept {
  status_at_alarm = static_cast<int>(status);
  std::signal(SIGALRM, [](int) { _exit(status_at_alarm); });
  alarm(5);
  if (mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(status));
  _exit(static_cast<int>(status));
}

}  // namespace gridlops
