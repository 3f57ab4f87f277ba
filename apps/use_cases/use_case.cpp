// SPDX-License-Identifier: BSD-3-Clause
#include "use_cases/use_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <numbers>
#include <numeric>
#include <span>

#include "command_line/console.hpp"
#include "command_line/file_checks.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/io/array_file.hpp"
#include "gridlops/io/text_file.hpp"
#include "matrix/memory_plan.hpp"
#include "solve/solve_progress.hpp"
#include "subcommands.hpp"

namespace gridlops::program {

namespace {

void write_costs(Communicator& world, const std::string& path,
                 const std::vector<std::vector<double>>& costs) {
  if (path.empty()) return;
  attempt(world, [&] {
    if (world.rank() != 0) return;
    std::string text;
    for (std::size_t k = 0; k < costs.size(); ++k)
      text += fmt::format("{} {:.17g}\n", k, fmt::join(costs[k], " "));
    write_text_file(path, [&text]() { return std::exchange(text, {}); });
  });
}

/// Whether a column ended well. Without a tolerance, the iteration limit is a good end, too.
bool ended_well(const ColumnReport& column, bool may_reach_limit) {
  return column.reason == StopReason::converged || column.reason == StopReason::stagnated ||
         (column.reason == StopReason::iteration_limit && may_reach_limit);
}

}  // namespace

void define_use_case(Options& options, UseCaseArguments& arguments, const std::vector<Solver>& among,
                     const char* iterations) {
  options.group("Inversion");
  options.choice("--solver", arguments.solver, solvers(among),
                 fmt::format("The method [{}]", name_of(arguments.solver)).c_str());
  options.whole("--iterations", arguments.iterations, "K", 0,
                fmt::format("The most iterations [{}]", iterations).c_str());
  options.number("--tolerance", arguments.tolerance, "T", 0,
                 (tolerance_text(among) + " [0: no test; all --iterations are made]").c_str());
  options.choice("--dtype", arguments.type, names_of({ScalarType::f32, ScalarType::f64}),
                 fmt::format("Type of the elements [{}]", name_of(arguments.type)).c_str());
  options.group("Results");
  options.text("--cost", arguments.cost, "FILE", "Writes the cost before each iteration, and after");
  options.text("--save", arguments.save, "DIR", "Writes model, data and inversion as .npy; made if missing");
  options.text("--report", arguments.report, "R.json",
               "Writes figures of the run as JSON, which gridlops report compares");
  options.flag("--quiet", arguments.quiet, "Prints no tables");
  options.group("Ranks");
  options.parsed(
      "--grid", [&arguments](const std::string& text) { arguments.grid = parse_grid_shape(text); }, "PxQ",
      "Process grid: its rows and columns [all ranks in one column]");
  options.choice("--transport", arguments.transport, transports(), "What carries the data [auto]");
  options.choice("--device", arguments.device, words({"cpu", "gpu"}),
                 "Where vectors live and operators run [cpu]");
  options.flag("--dry-run", arguments.dry_run, "Says what memory each rank would take, and stops");
}

std::vector<double> ricker(double frequency, double interval, Index half) {
  std::vector<double> samples;
  for (Index k = -half; k <= half; ++k) {
    const double a = std::pow(std::numbers::pi * frequency * interval * static_cast<double>(k), 2);
    samples.push_back((1 - 2 * a) * std::exp(-a));
  }
  return samples;
}

std::vector<std::vector<double>> costs_of(const SolveReport& report) {
  std::vector<double> norms(report.columns.size());
  std::vector<std::vector<double>> costs;
  for (const IterationRecord& record : report.history) {
    for (std::size_t k = 0; k < record.columns.size(); ++k)
      norms[static_cast<std::size_t>(record.columns[k])] = record.residual_norms[k];
    double squares = 0;
    for (const double norm : norms) squares += norm * norm;
    const auto iteration = static_cast<std::size_t>(record.iteration);
    costs.resize(std::max(costs.size(), iteration + 1));
    costs[iteration] = {norms.size() == 1 ? norms.front() : std::sqrt(squares)};
    if (norms.size() > 1) costs[iteration].insert(costs[iteration].end(), norms.begin(), norms.end());
  }
  return costs;
}

UseCase::UseCase(Communicator& world, const char* command, const UseCaseArguments& arguments, GridShape shape,
                 const std::vector<std::string>& saved, const std::vector<NamedFile>& inputs)
    : world_(world), arguments_(arguments) {
  calibration_ = calibration_for(world, facts_.shape, false, false);
  grid_ = make_grid(world, arguments.grid.value_or(shape), arguments.device, arguments.transport);
  facts_.command = command;
  facts_.grid = grid_->shape();
  facts_.shape.type = arguments.type;
  facts_.device = arguments.device;
  facts_.transport = transport_of(*grid_);
  std::vector<NamedFile> outputs;
  if (!arguments.dry_run) {
    outputs = {{"--cost", arguments.cost, NamedFile::text}, {"--report", arguments.report, NamedFile::text}};
    if (!arguments.save.empty()) make_directory(world, arguments.save);
    for (const std::string& name : saved)
      if (!arguments.save.empty()) outputs.push_back({"--save", path_of(name)});
  }
  for (const std::vector<NamedFile>* named : {&inputs, &std::as_const(outputs)})
    for (const NamedFile& file : *named)
      if (file.path != arguments.report) facts_.files.push_back({file.option, file.path, {}});
  check_outputs(world, inputs, outputs);
  if (arguments.dry_run || arguments.save.empty()) return;
  // The files that any use case may write. Users may keep their own data beside them.
  claim_folder(world, arguments.save, "inversion", {"adjoint.npy", "inverted.npy", "migrated.npy"});
  if (std::find(saved.begin(), saved.end(), "model") != saved.end())
    claim_folder(world, arguments.save, "model", {"background.npy", "data.npy", "model.npy"});
}

ExitStatus UseCase::run_on_members(const std::function<void()>& work) {
  run_on_grid(world_, *grid_, work);
  measured_.setup_seconds += clock_.lap();
  if (is_dry()) return ExitStatus::done;
  if (!grid_->is_member()) measured_ = {.planned_bytes = 0};
  facts_.choices = calibration_.source_of_choices(kernel_type_.value_or(facts_.shape.type));
  write_costs(world_, arguments_.cost, costs_);
  write_report(world_, arguments_.report, facts_, measured_, &report_);
  const bool talks = world_.rank() == 0;
  if (talks && !arguments_.quiet) {
    for (const auto& [name, value] : facts_.figures) print(fmt::format("{}: {:.6g}\n", name, value));
    print(fmt::format("{} iterations of {} on {} x {} ranks in {}\n", report_.iterations, report_.solver,
                      grid_->rows(), grid_->cols(), duration_text(measured_.compute_seconds)));
  }
  const bool may_reach_limit = arguments_.tolerance.value_or(0) == 0;
  if (std::all_of(report_.columns.begin(), report_.columns.end(),
                  [&](const ColumnReport& column) { return ended_well(column, may_reach_limit); }))
    return ExitStatus::done;
  if (talks) warn(fmt::format("not every column was solved: {}", verdict_text(report_)));
  return ExitStatus::not_converged;
}

template <Scalar T>
void UseCase::solve(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X) {
  solve({A.rows(), A.cols(), B.cols(), scalar_type_of<T>},
        [&](const SolveOptions& options) { return gridlops::solve(arguments_.solver, A, B, X, options); });
}

void UseCase::solve(const ProductShape& shape,
                    const std::function<SolveReport(const SolveOptions&)>& solver) {
  facts_.shape = shape;
  SolveOptions options;
  options.max_iterations = arguments_.iterations;
  const double tolerance = arguments_.tolerance.value_or(0);
  options.tolerance = tolerance;
  option("iterations", options.max_iterations);
  option("tolerance", tolerance);
  if (world_.rank() == 0 && !arguments_.quiet)
    options.observers.push_back(std::make_shared<SolveProgress>(1));
  measured_.setup_seconds += clock_.lap();
  measured_.compute(*grid_, [&] { report_ = solver(options); });
  clock_.lap();
  costs_ = costs_of(report_);
}

bool UseCase::plan(const InversionMemory& memory, const char* method) {
  constexpr std::array<const char*, 6> labels{"kernel, or tables",        "models and data",
                                              "solver's vectors",         "products",
                                              "in all, in the inversion", "in all, before it or after it"};
  measured_.planned_bytes = std::max(memory.in_inversion(), memory.otherwise);
  if (!is_dry()) return false;
  const SolveBytes& solve = memory.solve;
  std::array<Index, labels.size()> least{solve.operators, memory.arrays,         solve.vectors,
                                         solve.products,  memory.in_inversion(), memory.otherwise},
      most = least;
  grid_->comm().all_reduce(least, ReduceOp::min);
  grid_->comm().all_reduce(most, ReduceOp::max);
  const std::size_t rows = most.back() > 0 ? labels.size() : labels.size() - 1;
  if (world_.rank() == 0)
    print(fmt::format("{} x {} ranks, {}\n{}", grid_->rows(), grid_->cols(), method,
                      bytes_table(std::span(labels).first(rows), least, most)));
  return true;
}

template <Scalar T>
void UseCase::save(const std::string& name, const Dims& dims, const ConstDistMatrix<T>& X) {
  if (arguments_.save.empty()) return;
  measured_.setup_seconds += clock_.lap();
  write_array(path_of(name), dims, X);
  measured_.write_seconds += clock_.lap();
}

#define GRIDLOPS_INSTANTIATE(T)                                                                      \
  template void UseCase::solve(const LinearOperator<T>&, const ConstDistMatrix<T>&, DistMatrix<T>&); \
  template void UseCase::save(const std::string&, const Dims&, const ConstDistMatrix<T>&);
GRIDLOPS_INSTANTIATE(float)
GRIDLOPS_INSTANTIATE(double)
GRIDLOPS_INSTANTIATE(std::complex<float>)
GRIDLOPS_INSTANTIATE(std::complex<double>)
#undef GRIDLOPS_INSTANTIATE

}  // namespace gridlops::program
