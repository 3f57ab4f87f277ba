// SPDX-License-Identifier: BSD-3-Clause
#include "checkpointing.hpp"

#include <fmt/format.h>
#include <signal.h>

#include "gridlops/backend.hpp"
#include "gridlops/error.hpp"
#include "text_checks.hpp"

namespace gridlops::program {

namespace {

volatile sig_atomic_t end_is_near = 0;

void note_signal(int) { end_is_near = 1; }

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

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGUSR1, SIGTERM}) sigaction(signal, &action, nullptr);
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
