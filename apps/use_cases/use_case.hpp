// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command_line/file_checks.hpp"
#include "command_line/grid.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/io/calibration.hpp"
#include "gridlops/ops/linear_operator.hpp"
#include "measure/report.hpp"

namespace gridlops::program {

// The common parts of the use cases: subcommands that make data of a physical problem, and invert them.

struct UseCaseArguments {
  std::optional<GridShape> grid;
  Solver solver = Solver::cgls;
  Index iterations = 100;
  std::optional<double> tolerance;  ///< 0, or unset: all iterations run
  ScalarType type = ScalarType::f64;
  std::string device = "cpu", transport = "auto";
  std::string cost, report, save;  ///< files and a folder; empty: none
  bool quiet = false, dry_run = false;
};

/// Adds the options that set these arguments. iterations: the default, as the help states it.
void define_use_case(Options& options, UseCaseArguments& arguments,
                     const std::vector<Solver>& solvers = {Solver::cgls, Solver::lsqr, Solver::lsmr},
                     const char* iterations = "100");

/// The memory of a rank for an inversion, in bytes.
struct InversionMemory {
  SolveBytes solve{};
  Index arrays = 0;     ///< models and data
  Index otherwise = 0;  ///< all that the rank has at most before the inversion, or after

  Index in_inversion() const { return solve.total() + arrays; }
};

/// Samples of the Ricker wavelet (1 − 2a) e⁻ᵃ, a = (π f t)², at t = −half … half times the interval.
std::vector<double> ricker(double frequency, double interval, Index half);

/// The costs of each iteration, including the start: the Frobenius norm of the residual and, if there are
/// several columns, each column's norm. A column that has ended keeps its last known norm.
std::vector<std::vector<double>> costs_of(const SolveReport& report);

/// One run of a use case, with its grid, its outputs and its measurements. The constructor and run() are
/// collective over world, all other members over the grid.
class UseCase {
 public:
  /// Makes the grid, of the requested shape or else of this one. The run chooses by the calibration of these
  /// machines, if there is one. Checks that all outputs can be written and are not inputs, including a file
  /// NAME.npy in the folder --save for each of these names. The arguments must outlive this object.
  UseCase(Communicator& world, const char* command, const UseCaseArguments& arguments, GridShape shape,
          const std::vector<std::string>& saved, const std::vector<NamedFile>& inputs = {});

  const std::shared_ptr<const ProcessGrid>& grid() const { return grid_; }

  /// Calls work.operator()<T>() on the ranks of the grid for the requested type T, and writes the cost file
  /// and the report. Returns whether all columns ended well; the iteration limit is a good end if there is no
  /// tolerance.
  template <class Work>
  ExitStatus run(Work&& work) {
    return run_on_members([&] {
      arguments_.type == ScalarType::f32 ? work.template operator()<float>()
                                         : work.template operator()<double>();
    });
  }

  // For use in work().

  /// Solves A X ≈ B from zero by the requested solver, and keeps its report and costs.
  template <Scalar T>
  void solve(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X);
  /// The sizes with the caller's solver, for a problem of this shape.
  void solve(const ProductShape& shape, const std::function<SolveReport(const SolveOptions&)>& solver);
  /// Replaces the costs of the solver's report by these.
  void set_costs(std::vector<std::vector<double>> costs) { costs_ = std::move(costs); }

  /// Whether --dry-run asks for memory alone. Then work() takes none, and ends at plan().
  bool is_dry() const { return arguments_.dry_run; }
  /// Notes what memory an inversion takes, for the report. If is_dry(), says it instead, and returns true.
  /// method: its name.
  bool plan(const InversionMemory& memory, const char* method);
  bool plan(const InversionMemory& memory) { return plan(memory, name_of(arguments_.solver)); }

  /// Writes NAME.npy, with arrays of these dims, if results are saved.
  template <Scalar T>
  void save(const std::string& name, const Dims& dims, const ConstDistMatrix<T>& X);

  /// Notes the type of a kernel, whose products follow a calibration, if it is not that of the problem.
  void note_kernel(ScalarType type) { kernel_type_ = type; }
  /// Notes an option that the inversion used, for the report.
  template <class Value>
  void option(const std::string& name, const Value& value) {
    facts_.options[name] = value;
  }
  /// Notes a number of the result, for the terminal and the report.
  void figure(const std::string& name, double value) { facts_.figures.emplace_back(name, value); }

 private:
  ExitStatus run_on_members(const std::function<void()>& work);
  std::string path_of(const std::string& name) const { return arguments_.save + "/" + name + ".npy"; }

  Communicator& world_;
  const UseCaseArguments& arguments_;
  Calibration calibration_;
  std::shared_ptr<const ProcessGrid> grid_;
  RunFacts facts_;
  std::optional<ScalarType> kernel_type_;
  Stopwatch clock_;
  Measurements measured_;
  SolveReport report_;
  std::vector<std::vector<double>> costs_;
};

}  // namespace gridlops::program
