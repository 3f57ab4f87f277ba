// SPDX-License-Identifier: BSD-3-Clause
// The main of test programs that run on several ranks. Rank 0 reports as usual. Another rank prints only if a
// test case fails there, and then at once. A failure on any rank fails the job. A test case that takes too
// long ends the job, because ranks would wait for ever for one that left the test case early.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>

#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include "gridlops/comm/gpu.hpp"
#include "gridlops/comm/mpi.hpp"
#include "support/catch.hpp"
#include "support/programs/mpi_main.hpp"

namespace {

using gridlops::Communicator;

constexpr int skipped = 77;  // Meson's status for a skipped test

std::string setting(const char* name, const char* otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}

Communicator* the_world = nullptr;
std::array<char, 512> hang_message{};

/// Captures standard output in a file that disappears when the process ends.
class CapturedOutput {
 public:
  CapturedOutput() : file_(std::tmpfile()) {
    if (file_ != nullptr) dup2(fileno(file_), STDOUT_FILENO);
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;
  ~CapturedOutput() {
    if (file_ != nullptr) std::fclose(file_);
  }

  /// Writes the captured text to standard error, and forgets it.
  void show(int rank) {
    std::cout.flush();
    std::fflush(stdout);
    if (file_ == nullptr) return;
    std::cerr << "---- rank " << rank << " ----\n";
    std::rewind(file_);
    std::array<char, 4096> text;
    for (std::size_t n; (n = std::fread(text.data(), 1, text.size(), file_)) > 0;)
      std::fwrite(text.data(), 1, n, stderr);
    std::rewind(file_);
    if (ftruncate(fileno(file_), 0) != 0) std::perror("gridlops tests");
  }

 private:
  std::FILE* file_;
};

std::optional<CapturedOutput> captured_output;

#if __has_include(<catch2/catch_all.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

struct RankListener : ListenerBase {
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    const std::string seconds = setting("GRIDLOPS_TEST_CASE_SECONDS", "120");
    std::snprintf(hang_message.data(), hang_message.size(),
                  "rank %d is not done after %s s of test case \"%s\": it hangs, or the machine is busy; "
                  "GRIDLOPS_TEST_CASE_SECONDS sets this limit\n",
                  the_world->rank(), seconds.c_str(), info.name.c_str());
    alarm(static_cast<unsigned>(std::atoi(seconds.c_str())));
  }

  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (captured_output && stats.totals.assertions.failed > 0) captured_output->show(the_world->rank());
  }
};

CATCH_REGISTER_LISTENER(RankListener)

void on_alarm(int) {
  if (write(STDERR_FILENO, hang_message.data(), std::strlen(hang_message.data())) < 0) _exit(70);
  _exit(75);
}

bool on_gpu() { return setting("GRIDLOPS_TEST_DEVICE", "cpu") == "gpu"; }

}  // namespace

gridlops::Communicator& gridlops::testing::world() { return *the_world; }

std::shared_ptr<gridlops::Backend> gridlops::testing::make_backend() {
  if (setting("GRIDLOPS_TEST_TRANSPORT", "mpi") == "shared") return make_shared_host_backend();
  return on_gpu() ? make_gpu_backend(rank_on_host(*the_world) % gpu_info().devices) : make_host_backend();
}

namespace {

/// Runs the test cases. Returns the exit status, which is the same on all ranks.
int run_tests(gridlops::MpiSession& session, int argc, char** argv) {
  the_world = &session.world();
  std::unique_ptr<Communicator> other_world;
  if (on_gpu()) {
    if (const gridlops::GpuInfo gpus = gridlops::gpu_info(); gpus.devices == 0) {
      if (the_world->rank() == 0) std::cout << "skipped: " << gpus.problem << "\n";
      return skipped;
    }
    other_world = gridlops::make_gpu_communicator(*the_world, gridlops::testing::make_backend(),
                                                  setting("GRIDLOPS_TEST_TRANSPORT", "nccl"));
  } else {
    other_world =
        gridlops::make_host_communicator(session.world(), setting("GRIDLOPS_TEST_TRANSPORT", "mpi"));
  }
  if (other_world != nullptr) the_world = other_world.get();
  signal(SIGALRM, on_alarm);
  const auto same_seed = [](std::uint32_t mine) {
    std::array<std::int64_t, 1> seed{mine};
    the_world->broadcast(seed, 0);
    if (the_world->rank() != 0) captured_output.emplace();
    return static_cast<std::uint32_t>(seed[0]);
  };
  std::array<std::int32_t, 1> failed{gridlops::testing::run_catch(argc, argv, same_seed)};
  the_world = &session.world();
  other_world.reset();
  the_world->all_reduce(failed, gridlops::ReduceOp::max);
  return failed[0];
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  {
    gridlops::MpiSession session(&argc, &argv);
    status = run_tests(session, argc, argv);
  }
  const std::string left = gridlops::testing::left_handles();
  if (left.empty()) return status;
  std::cerr << "handles of MPI were left: " << left << "\n";
  return 1;
}
