// SPDX-License-Identifier: BSD-3-Clause
#include <cxxabi.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>

#include "base/message.hpp"
#include "base/settings.hpp"
#include "comm/failure/failure.hpp"
#include "comm/failure/flight_recorder.hpp"
#include "comm/failure/job_end.hpp"
#include "comm/failure/watchdog.hpp"
#include "comm/mpi/device_memory.hpp"
#include "comm/mpi/launch.hpp"
#include "comm/mpi/mpi_communicator.hpp"
#include "comm/mpi/mpi_transfer.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/backend.hpp"
#include "local/tiles/kernel_set.hpp"

namespace gridlops {

namespace {

/// The state of the process's one session, besides its world.
struct SessionState {
  std::unique_ptr<Watchdog> watchdog;
  std::terminate_handler previous_handler = nullptr;
  std::optional<int> status;  // returned by the body of run()
};
// Never destroyed: exit() in the middle of a session must not communicate.
SessionState& session = *new SessionState;

std::string readable(const char* mangled_type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(mangled_type, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : mangled_type;
}

struct Cause {
  std::string text;
  ExitStatus status = ExitStatus::internal;
};

/// Call only in a handler of an exception.
Cause cause_of_current_exception() {
  const std::string type = readable(abi::__cxa_current_exception_type()->name());
  const auto status = static_cast<ExitStatus>(SentFailure(std::current_exception()).status);
  try {
    throw;
  } catch (const std::exception& error) {
    return {message(type, ": ", error.what()), status};
  } catch (...) {
    return {type, status};
  }
}

[[noreturn]] void end_job_because(const Cause& cause) {
  std::string text = cause.text;
  if (const std::string communicating = flight_recorder().last().text(); !communicating.empty())
    text += "; " + communicating;
  text += kept_failure_text();
  report(text);
  end_job(cause.status);
}

[[noreturn]] void on_terminate() {
  static std::atomic_flag entered;
  if (entered.test_and_set()) _exit(static_cast<int>(ExitStatus::internal));
  end_job_because(std::current_exception() != nullptr
                      ? cause_of_current_exception()
                      : Cause{"std::terminate was called without an exception"});
}

constexpr double usual_timeout = 600;  // seconds

double timeout_from_environment() {
  return number_in("GRIDLOPS_TIMEOUT", usual_timeout, 0.0, 1e9,
                   "a number of seconds, at most a billion, or 0 for no limit");
}

/// Returns that limit, or the usual one for a wrong value, whose error is yet to come.
double timeout_or_usual() {
  try {
    return timeout_from_environment();
  } catch (const UsageError&) {
    return usual_timeout;
  }
}

/// Reads all variables of the library but names of files. Throws UsageError if one has a value that it cannot
/// have.
void read_settings() {
  static_cast<void>(threads_per_rank());
  static_cast<void>(kernel_choice());
  set_check_level(std::nullopt);
  static_cast<void>(check_level());
  static_cast<void>(may_give_mpi_device_memory());
  static_cast<void>(timeout_from_environment());
}

/// Calls MPI_Finalize, and says whose fault it is if that crashes: Open MPI 4 crashes there about once in a
/// few thousand runs (its issue 10117), after all ranks have done their work.
void finalize_mpi() {
  static std::string explanation;
  static std::array<std::pair<int, struct sigaction>, 3> previous{
      {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGABRT, {}}}};
  explanation =
      line_of_rank(message("MPI crashed in MPI_Finalize, after all ranks had done their work",
                           session.status ? message("; the exit status was ", *session.status) : ""));
  struct sigaction explain {};
  // The crash then takes its course, with the previous handlers.
  explain.sa_handler = [](int) {
    write_line(explanation);
    for (const auto& [signal, action] : previous) sigaction(signal, &action, nullptr);
  };
  for (auto& [signal, action] : previous) sigaction(signal, &explain, &action);
  MPI_Finalize();
  for (const auto& [signal, action] : previous) sigaction(signal, &action, nullptr);
}

/// Writes an error that all ranks have met, once. Rank 0 has written it before any rank goes on: a launcher
/// may end the others when one ends (collective over comm).
void tell_together(Communicator& comm, const Error& error) {
  agree(comm, "ending", [&](Agreement&) {
    if (comm.rank() == 0) write_line(message("gridlops: error: ", error.what(), "\n"));
  });
}

/// Gives all ranks the lowest rank's level of comparisons (collective over comm). With levels of their own,
/// some would wait for comparisons that others do not make.
void share_check_level(Communicator& comm) {
  std::array<std::int32_t, 1> level{static_cast<std::int32_t>(check_level())};
  set_check_level(Check::off);
  comm.broadcast(level, 0);
  set_check_level(static_cast<Check>(level[0]));
}

/// talks: whether this process prints the reason, which many may have.
[[noreturn]] void end_at_start(const std::string& why, bool talks) {
  if (talks) write_line(message("gridlops: error: ", why, "\n"));
  std::exit(static_cast<int>(ExitStatus::usage));
}

void require_no_session() {
  require<UsageError>(session.watchdog == nullptr,
                      "a second MpiSession was made while the first one lives; pass the one of main on");
}

}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  require_no_session();
  if (!mpi_is_running()) {
    if (const std::string why = launched_within_a_rank(); !why.empty()) end_at_start(why, true);
    int provided = 0, size = 0;
    MpiGroup().check(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread", 0);
    owns_mpi_ = true;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (const ForeignLaunch launch = launched_by_another_mpi(size); !launch.why.empty()) {
      finalize_mpi();
      end_at_start(launch.why, launch.is_first);
    }
  }
  begin(MPI_COMM_WORLD, owns_mpi_ ? WhenStuck::end_job : WhenStuck::throw_error);
}

MpiSession::MpiSession(MPI_Comm comm, WhenStuck when_stuck) {
  require_no_session();
  require<UsageError>(mpi_is_running(),
                      "a session of a communicator of the program's needs MPI, which does not run; start it, "
                      "or make a session of argc and argv");
  begin(comm, when_stuck);
}

void MpiSession::begin(MPI_Comm comm, WhenStuck when_stuck) {
  ends_job_ = when_stuck == WhenStuck::end_job;
  session.previous_handler = std::set_terminate(on_terminate);
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  name_rank(rank);
  session.watchdog = std::make_unique<Watchdog>(comm, timeout_or_usual(), when_stuck);
  std::unique_ptr<Communicator> first = make_mpi_communicator(comm);
  try {
    agree(*first, "reading the environment", [](Agreement&) { read_settings(); });
  } catch (const UsageError& error) {
    if (owns_mpi_) tell_together(*first, error);
    first.reset();
    session.watchdog.reset();
    std::set_terminate(session.previous_handler);
    name_rank(std::nullopt);
    if (!owns_mpi_) throw;
    finalize_mpi();
    std::exit(static_cast<int>(error.status()));
  }
  share_check_level(*first);
  first.reset();
  flight_recorder() = {};  // errors name what the program has communicated
  world_ = make_mpi_communicator(comm);
  share_processors_of_machine(*world_);
}

// If some ranks did not come, the rest makes no collective call.
MpiSession::~MpiSession() {
  bool all_came = std::uncaught_exceptions() == 0;
  if (!all_came && ends_job_) end_job_because({"an exception left the session"});
  std::set_terminate(session.previous_handler);
  if (!mpi_is_running()) return;
  all_came = all_came && !session.watchdog->is_out_of_step();
  if (all_came) {
    try {
      session.watchdog->await_all_ranks();
    } catch (const Error& error) {
      report(error.what());
      all_came = false;
    }
  }
  if (all_came) {
    world_.reset();
  } else {
    static_cast<void>(world_.release());
  }
  session.watchdog.reset();
  set_ranks_out_of_step(false);
  name_rank(std::nullopt);
  if (owns_mpi_) finalize_mpi();
}

int MpiSession::run(const std::function<int()>& body) {
  try {
    session.status = body();
    return *session.status;
  } catch (...) {
    end_job_because(cause_of_current_exception());
  }
}

}  // namespace gridlops
