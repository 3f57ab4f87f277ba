// SPDX-License-Identifier: BSD-3-Clause
#include "checkpointing.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "gridlops/backend.hpp"
#include "gridlops/error.hpp"
#include "text_checks.hpp"

namespace gridlops::program {

namespace {

volatile sig_atomic_t end_is_near = 0, iterations_done = 0;
// Set before any signal is caught.
bool saves_state = false, tells = false;
const char* line_start = "";  // erases the progress bar, if there may be one

/// A line on standard error, made with what a signal handler may call only.
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
    if (tells && ::write(STDERR_FILENO, text_, used_) < 0) return;  // there is nobody to be told of that
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
  end_is_near = 1;
  if (signal != SIGINT) return;
  take_default(signal);
  SignalLine line;
  line << line_start << "gridlops: warning: interrupted after iteration " << iterations_done
       << "; the next one is saved, then the run ends; a second SIGINT ends it at once\n";
  line.write();
}

void end_unsaved(int signal) {
  // mpirun sends SIGTERM to those that still run when a rank has ended with an error, which has been told.
  const bool is_news = signal == SIGINT || iterations_done > 0;
  SignalLine line;
  line << line_start << "gridlops: error: " << name_of_signal(signal) << " ended the run after iteration "
       << iterations_done << "; nothing is saved, because --checkpoint was not given"
       << (signal == SIGTERM ? "; if a rank has failed, its message says why\n" : "\n");
  if (is_news) line.write();
  take_default(signal);
  raise(signal);  // is delivered when the handler returns
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

void note_signal(int signal) {
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

/// Of the unit that a text ends with; 0 for a plain number.
double seconds_per_unit(const std::string& text) {
  switch (text.empty() ? '0' : text.back()) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    default:
      return 0;
  }
}

std::string without_unit(const std::string& text) {
  return seconds_per_unit(text) > 0 ? text.substr(0, text.size() - 1) : text;
}

}  // namespace

RunFactsText facts_of_run(GridShape grid, Algorithm algorithm, const ProductArguments& product) {
  const BlasInfo blas = blas_info();
  return {{"grid", fmt::format("{}x{}", grid.rows, grid.cols)},
          {algorithm_fact, name_of(algorithm)},
          {"panel", std::to_string(product.panel)},
          {"summa form", name_of(product.summa_form)},
          {"blas", blas.library},
          {"blas kernel", blas.kernel},
          {"blas threads", std::to_string(blas.threads)}};
}

void IterationsUnderWay::note(Index iteration) {
  constexpr Index most = std::numeric_limits<sig_atomic_t>::max();
  iterations_done = static_cast<sig_atomic_t>(std::min(iteration, most));
}

void catch_signals(bool saves, bool talks) {
  saves_state = saves;
  tells = talks;
  if (isatty(STDERR_FILENO) == 1) line_start = "\r\033[K";
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGUSR1, SIGTERM, SIGINT}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // A shell that starts a program in the background has it ignore SIGINT.
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

CheckpointOptions checkpoint_options(const CheckpointArguments& arguments, RunFactsText facts) {
  CheckpointOptions options;
  options.directory = arguments.directory;
  options.every_iterations = arguments.every_iterations;
  options.every_seconds = arguments.every_seconds;
  options.requested = [] { return end_is_near != 0; };
  options.facts = std::move(facts);
  options.restart = arguments.restart;
  return options;
}

std::string saved_fact(const RunFactsText& saved, const char* name) {
  const auto found = saved.find(name);
  return found == saved.end() ? std::string() : found->second;
}

void adopt_choices(const RunFactsText& saved, GridShape grid, ProductArguments& product) {
  const auto fact = [&saved](const char* name) { return saved_fact(saved, name); };
  if (fact("grid") != fmt::format("{}x{}", grid.rows, grid.cols)) return;
  for (const Algorithm algorithm :
       {Algorithm::block, Algorithm::summa, Algorithm::stationary_a, Algorithm::stationary_b}) {
    if (product.algorithm == Algorithm::automatic && fact(algorithm_fact) == name_of(algorithm))
      product.algorithm = algorithm;
  }
  if (product.panel == 0 && whole_number_problem(fact("panel"), 0).empty())
    product.panel = whole_number(fact("panel"));
}

std::string rounding_difference(const RunFactsText& saved, const RunFactsText& now) {
  std::string text;
  for (const auto& [name, value] : now) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second == value) continue;
    text += fmt::format("{}{} {} instead of {}", text.empty() ? "" : ", ", name, value, found->second);
  }
  return text;
}

std::string interval_problem(const std::string& text) {
  if (seconds_per_unit(text) == 0) {
    const std::string problem = whole_number_problem(text, 1);
    return problem.empty() ? problem : problem + "; or a time: 30s, 10m, 2h";
  }
  return number_problem(without_unit(text), 0);
}

void take_interval(const std::string& text, CheckpointArguments& arguments) {
  arguments.every_iterations = 0;
  arguments.every_seconds = 0;
  if (seconds_per_unit(text) > 0) {
    arguments.every_seconds = number(without_unit(text)) * seconds_per_unit(text);
  } else {
    arguments.every_iterations = whole_number(text);
  }
}

}  // namespace gridlops::program
