// SPDX-License-Identifier: BSD-3-Clause
#include "solve/checkpointing.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "command_line/grid.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/local/backend.hpp"

namespace gridlops::program {

namespace {

volatile sig_atomic_t end_requested = 0, iterations_done = 0;
// Set before any signal is caught.
bool saves_state = false, tells = false;
const char* line_start = "";  // erases the progress bar, if there may be one

/// A line on standard error, written only with functions that a signal handler may call.
class SignalLine {
 public:
  SignalLine& operator<<(const char* text) {
    const std::size_t length = std::min(std::strlen(text), sizeof text_ - used_);
    std::memcpy(text_ + used_, text, length);
    used_ += length;
    return *this;
  }
  SignalLine& operator<<(int number) {
    char digits[12];
    char* first = digits + sizeof digits - 1;
    *first = 0;
    do {
      *--first = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return *this << first;
  }
  void write() const {
    if (tells && ::write(STDERR_FILENO, text_, used_) < 0) return;  // a failed write changes nothing
  }

 private:
  char text_[256];
  std::size_t used_ = 0;
};

void take_default(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

const char* name_of_signal(int signal) { return signal == SIGINT ? "SIGINT" : "SIGTERM"; }

void save_and_end(int signal) {
  end_requested = 1;
  if (signal != SIGINT) return;
  SignalLine line;
  line << line_start << "gridlops: warning: interrupted after iteration " << iterations_done
       << "; the next one is saved, then the run ends; a second SIGINT ends it at once\n";
  line.write();
  take_default(signal);  // at once another thread may get the second one, and end the process
}

void end_unsaved(int signal) {
  // After one rank has ended with an error, and reported it, mpirun sends SIGTERM to all others.
  const bool is_news = signal == SIGINT || iterations_done > 0;
  SignalLine line;
  line << line_start << "gridlops: error: " << name_of_signal(signal) << " ended the run after iteration "
       << iterations_done << "; nothing is saved, because --checkpoint was not given"
       << (signal == SIGTERM ? "; if a rank has failed, its message says why\n" : "\n");
  if (is_news) line.write();
  take_default(signal);
  raise(signal);  // takes effect when the handler returns
}

void go_on_unsaved() {
  static volatile sig_atomic_t was_told = 0;
  if (was_told != 0) return;
  was_told = 1;
  SignalLine line;
  line << line_start << "gridlops: warning: SIGUSR1 came after iteration " << iterations_done
       << ", but --checkpoint was not given: nothing is saved, and the run goes on\n";
  line.write();
}

void handle_signal(int signal) {
  const int error = errno;
  if (saves_state) {
    save_and_end(signal);
  } else if (signal == SIGUSR1) {
    go_on_unsaved();
  } else {
    end_unsaved(signal);
  }
  errno = error;
}

}  // namespace

CheckpointFacts facts_of_run(const ProcessGrid& grid, Algorithm algorithm, const ProductArguments& product,
                             const std::string& choices) {
  const BlasInfo blas = blas_info();
  return {{"grid", fmt::format("{}x{}", grid.rows(), grid.cols())},
          {"transport", transport_of(grid)},
          {algorithm_fact, name_of(algorithm)},
          {choices_fact, choices},
          {"panel", std::to_string(product.panel)},
          {"blas", blas.library},
          {"blas kernel", blas.kernel},
          {"blas threads", std::to_string(blas.threads)}};
}

bool end_is_requested() { return end_requested != 0; }

IterationForSignals::~IterationForSignals() { iterations_done = 0; }

bool IterationForSignals::step(const IterationInfo& info) {
  constexpr Index most = std::numeric_limits<sig_atomic_t>::max();
  iterations_done = static_cast<sig_atomic_t>(std::min(info.iteration, most));
  return false;
}

void catch_signals(bool saves, bool talks) {
  saves_state = saves;
  tells = talks;
  if (isatty(STDERR_FILENO) == 1) line_start = "\r\033[K";
  struct sigaction action {};
  action.sa_handler = handle_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // A shell makes its background processes ignore SIGINT; they must keep ignoring it.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

std::string saved_fact(const CheckpointFacts& saved, const char* name) {
  const auto found = saved.find(name);
  return found == saved.end() ? std::string() : found->second;
}

SolveArguments adopt_choices(const CheckpointFacts& saved, GridShape grid, SolveArguments arguments) {
  const auto fact = [&saved](const char* name) { return saved_fact(saved, name); };
  if (fact("grid") != fmt::format("{}x{}", grid.rows, grid.cols)) return arguments;
  ProductArguments& product = arguments.product;
  if (product.algorithm == Algorithm::automatic && !fact(algorithm_fact).empty())
    product.algorithm = parse_algorithm(fact(algorithm_fact));
  if (product.panel == 0) product.panel = std::strtoll(fact("panel").c_str(), nullptr, 10);
  return arguments;
}

std::string rounding_difference(const CheckpointFacts& saved, const CheckpointFacts& now) {
  std::string text;
  for (const auto& [name, value] : now) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second == value) continue;
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", name, value, found->second);
  }
  return text;
}

}  // namespace gridlops::program
