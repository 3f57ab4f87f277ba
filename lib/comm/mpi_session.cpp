// SPDX-License-Identifier: BSD-3-Clause
#include <cxxabi.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <typeinfo>
#include <utility>

#include "base/message.hpp"
#include "comm/call_account.hpp"
#include "comm/failure_scope.hpp"
#include "comm/mpi_communicator.hpp"
#include "gridlops/error.hpp"
#include "gridlops/mpi.hpp"

namespace gridlops {

namespace {

/// What the one session of a process needs besides its world.
struct SessionState {
  MPI_Comm farewell = MPI_COMM_NULL;  // on which ranks meet at the end; it carries nothing else
  std::terminate_handler previous_handler = nullptr;
  double timeout_seconds = 600;  // 0: none
  std::optional<int> status;     // of the body that run() ran
};
SessionState session;

volatile std::sig_atomic_t status_at_alarm = 0;

bool mpi_is_running() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

std::string line_of_rank(const std::string& text) {
  int rank = 0;
  if (mpi_is_running()) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  return message("gridlops: rank ", rank, " on ", host, ": ", text, "\n");
}

/// Writes to stderr, in a single call where the system allows it, so that the ranks' lines stay whole. Signal
/// handlers may call it.
void write_line(std::string_view line) noexcept {
  while (!line.empty()) {
    const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    if (written <= 0) return;
    line.remove_prefix(static_cast<std::size_t>(written));
  }
}

void report(const std::string& text) { write_line(line_of_rank(text)); }

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

/// Only called while an exception is being handled.
Cause cause_of_current_exception() {
  const auto text = [](const std::exception& error) {
    return message(readable(typeid(error).name()), ": ", error.what());
  };
  try {
    throw;
  } catch (const Error& error) {
    return {text(error), error.status()};
  } catch (const std::bad_alloc& error) {
    return {text(error), ExitStatus::out_of_memory};
  } catch (const std::exception& error) {
    return {text(error)};
  } catch (...) {
    return {readable(abi::__cxa_current_exception_type()->name())};
  }
}

[[noreturn]] void end_job_because(const Cause& cause) {
  std::string text = cause.text;
  if (const std::string communicating = last_operation().text(); !communicating.empty())
    text += "; " + communicating;
  if (const std::string kept = kept_failure_text(); !kept.empty())
    text += "; this rank had yet to tell the others of: " + kept;
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

double timeout_from_environment() {
  const char* text = std::getenv("GRIDLOPS_TIMEOUT");
  if (text == nullptr || *text == '\0') return SessionState().timeout_seconds;
  char* end = nullptr;
  const double seconds = std::strtod(text, &end);
  require<UsageError>(*end == '\0' && seconds >= 0, "GRIDLOPS_TIMEOUT is '", text,
                      "'; it must be a number of seconds, or 0 for no limit");
  return seconds;
}

/// Returns when all ranks have reached this point; ends the job if they do not come in time.
void wait_for_all_ranks() {
  using Clock = std::chrono::steady_clock;
  constexpr double notice_seconds = 10;
  MPI_Request all_here = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(session.farewell, &all_here) != MPI_SUCCESS) return;
  const auto begin = Clock::now();
  bool noticed = false;
  for (int done = 0; MPI_Test(&all_here, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0;) {
    const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
    if (session.timeout_seconds > 0 && waited > session.timeout_seconds) {
      end_job_because(
          {message("waited ", session.timeout_seconds,
                   " s at the end of its session for ranks that did not come; they may wait for this rank "
                   "in a communication that it left by an exception"),
           ExitStatus::try_again});
    }
    if (!noticed && waited > notice_seconds) {
      report(
          message("waits at the end of its session for other ranks",
                  session.timeout_seconds > 0 ? message(", at most ", session.timeout_seconds, " s") : ""));
      noticed = true;
    }
    if (waited < 0.001) {
      sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

/// MPI_Finalize, with a word on whose fault it is if that crashes: Open MPI 4 does so once in some thousand
/// runs (its issue 10117), when all ranks have done their work.
void finalize_mpi() {
  static std::string explanation;
  static std::array<std::pair<int, struct sigaction>, 3> previous{
      {{SIGSEGV, {}}, {SIGBUS, {}}, {SIGABRT, {}}}};
  explanation =
      line_of_rank(message("MPI crashed in MPI_Finalize, after all ranks had done their work",
                           session.status ? message("; the exit status was ", *session.status) : ""));
  struct sigaction explain {};
  // The crash then takes its course, with the handlers that were there before.
  explain.sa_handler = [](int) {
    write_line(explanation);
    for (const auto& [signal, action] : previous) sigaction(signal, &action, nullptr);
  };
  for (auto& [signal, action] : previous) sigaction(signal, &explain, &action);
  MPI_Finalize();
  for (const auto& [signal, action] : previous) sigaction(signal, &action, nullptr);
}

}  // namespace

// MPI_Abort may hang, or return. The alarm, or the last line, then ends the process.
void end_job(ExitStatus status) noexcept {
  status_at_alarm = static_cast<int>(status);
  std::signal(SIGALRM, [](int) { _exit(status_at_alarm); });
  alarm(5);
  if (mpi_is_running()) MPI_Abort(MPI_COMM_WORLD, static_cast<int>(status));
  _exit(static_cast<int>(status));
}

MpiSession::MpiSession(int* argc, char*** argv) {
  require<UsageError>(session.farewell == MPI_COMM_NULL,
                      "a second MpiSession was made while the first one lives; pass the one of main on");
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0) {
    int provided = 0;
    MpiGroup().check(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread", 0);
    owns_mpi_ = true;
  }
  session.previous_handler = std::set_terminate(on_terminate);
  session.timeout_seconds = timeout_from_environment();
  world_ = make_mpi_communicator(MPI_COMM_WORLD);
  const MpiGroup world{MPI_COMM_WORLD, world_->rank(), world_->size()};
  world.check(MPI_Comm_dup(MPI_COMM_WORLD, &session.farewell), "MPI_Comm_dup", 0);
  world.check(MPI_Comm_set_errhandler(session.farewell, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", 0);
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > 0) end_job_because({"an exception left the session"});
  std::set_terminate(session.previous_handler);
  if (!mpi_is_running()) return;
  wait_for_all_ranks();
  world_.reset();
  MPI_Comm_free(&session.farewell);
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
