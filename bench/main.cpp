// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "benchmarks.hpp"
#include "gridlops/mpi.hpp"
#include "option_parser.hpp"
#include "run_program.hpp"

namespace gridlops::bench {

namespace {

using program::Names;
using program::Options;
using program::whole_number;
using program::words;

/// "a,b,c" is a, b and c.
std::vector<std::string> items(const std::string& list) {
  std::vector<std::string> found;
  std::size_t begin = 0;
  for (std::size_t comma = list.find(','); comma != std::string::npos; comma = list.find(',', begin)) {
    found.push_back(list.substr(begin, comma - begin));
    begin = comma + 1;
  }
  found.push_back(list.substr(begin));
  return found;
}

/// Appends the numbers of an item: 16 of "16"; 1, 2, 4, 8 and 16 of "1..16"; 10, 20, 30 and 40 of
/// "10..40+10".
void append_numbers(const std::string& item, std::vector<Index>& numbers) {
  const std::size_t dots = item.find("..");
  const Index first = whole_number(item.substr(0, dots), 0);
  if (dots == std::string::npos) return numbers.push_back(first);
  const std::size_t plus = item.find('+', dots);
  const Index last = whole_number(item.substr(dots + 2, plus - dots - 2), 0);
  const Index step = plus == std::string::npos ? 0 : whole_number(item.substr(plus + 1), 1);
  if (step == 0 && first == 0)
    throw UsageError(fmt::format("'{}' doubles from 0 and never ends; add a step, as in 0..8+2", item));
  for (Index number = first; number <= last; number += step == 0 ? number : step) numbers.push_back(number);
}

CLI::Option* number_list(Options& options, const char* name, std::vector<Index>& values,
                         const char* placeholder, const char* about) {
  const auto parse = [&values](const std::string& text) {
    values.clear();
    for (const std::string& item : items(text)) append_numbers(item, values);
  };
  return options.parsed(name, parse, placeholder, about);
}

template <class Value>
void choice_list(Options& options, const char* name, std::vector<Value>& values, const Names<Value>& names,
                 const char* about) {
  const auto parse = [&values, names](const std::string& text) {
    values.clear();
    for (const std::string& item : items(text)) values.push_back(program::value_of(item, names));
  };
  options.parsed(name, parse, program::joined(names, "|") + "[,...]", about);
}

constexpr const char* about_limit_mib =
    "Size of the block whose reading, on a GPU copying, measures the memory limit [0: chosen]";

/// The options of all subcommands, and the variables behind them.
class GridlopsBench : public program::CommandLine {
 public:
  GridlopsBench()
      : CommandLine(
            "gridlops-bench",
            "Times what GridLOps does against the limits of the machine, measured by the same ranks in the "
            "same run",
            "Lists: 16,100; 1..64 doubles from 1 to 64; 100..500+100 adds. Every combination is measured,\n"
            "and of lists that --zip names entry by entry: --rows 1000,2000 --grid 1x1,2x1 --zip rows,grid\n"
            "Measure on an idle machine, with ranks bound to cores and OPENBLAS_NUM_THREADS=1.",
            // The program gridlops has variables of its own, for some subcommands of the same name.
            {"GRIDLOPS_CALIBRATE_", "GRIDLOPS_LSM_", "GRIDLOPS_MAKE_PROBLEM_", "GRIDLOPS_MDD_",
             "GRIDLOPS_MULTIPLY_", "GRIDLOPS_POSTSTACK_", "GRIDLOPS_REFLECTIVITY_", "GRIDLOPS_SOLVE_"}) {
    define_matmul();
    define_solve();
    define_comm();
    define_kernels();
    define_operators();
  }

 private:
  template <class Arguments>
  Options add_benchmark(const char* name, const char* about,
                        void (*run)(Communicator& world, const Arguments& arguments),
                        const Arguments& arguments) {
    return add_subcommand(name, about, [run, &arguments](Communicator& world) {
      run(world, arguments);
      return ExitStatus::done;
    });
  }

  static void define_method(Options& options, Method& method) {
    options.whole("--reps", method.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.whole("--limit-order", method.limit_order, "N", 1,
                  "Order of the GEMM that measures the compute limit [2048]");
    options.whole("--limit-mib", method.limit_mib, "MIB", 0, about_limit_mib);
    options.text("--json", method.json, "F", "Writes the figures as JSON");
  }

  static void define_common(Options& options, Cases& cases, Method& method) {
    number_list(options, "--rows", cases.rows, "M[,...]", "Rows of A")->required();
    number_list(options, "--cols", cases.cols, "N[,...]", "Columns of A")->required();
    number_list(options, "--rhs", cases.nrhs, "R[,...]", "Right-hand sides [1]");
    choice_list(options, "--dtype", cases.types, program::scalar_types(), "Types of the elements [f64]");
    options.parsed(
        "--grid",
        [&cases](const std::string& text) {
          cases.grids.clear();
          for (const std::string& item : items(text)) cases.grids.push_back(parse_grid_shape(item));
        },
        "PxQ[,...]", "Process grids [near-square]");
    choice_list(options, "--algorithm", cases.algorithms, program::algorithms(),
                "How products are formed [auto]");
    choice_list(options, "--transport", cases.transports, program::transports(),
                "What carries the data [auto]");
    options.choice("--device", cases.device, words({"cpu", "gpu"}),
                   "Where matrices live and products run [cpu]");
    options.whole("--panel", cases.panel, "W", 0, "Width of the panels that travel [0: chosen]");
    choice_list(options, "--storage", cases.storages, program::storages(),
                "block, stationary-a: how A is stored [auto]");
    choice_list(options, "--zip", cases.zipped, words(list_names()),
                "Lists of the same length that run side by side, entry by entry");
    define_method(options, method);
  }

  void define_matmul() {
    Options options = add_benchmark("matmul", "Products A X and A^H Y", matmul, matmul_);
    options.flag("--adjoint", matmul_.adjoint, "Products with the conjugate transpose of A");
    options.flag("--both", matmul_.both, "Both directions");
    define_common(options, matmul_.cases, matmul_.method);
  }

  void define_solve() {
    Options options = add_benchmark("solve", "Iterations of a least-squares solver", solve, solve_);
    choice_list(options, "--solver", solve_.solvers, words(solver_names()),
                "Methods; cg: with a positive definite matrix [cgls]");
    options.flag("--one-pass", solve_.one_pass, "cgls: reads A once in an iteration, in stationary-a");
    options.whole("--iterations", solve_.iterations, "K", 1, "Iterations in each repetition [10]");
    define_common(options, solve_.cases, solve_.method);
  }

  void define_comm() {
    Options options = add_benchmark("comm", "Operations of communicators", comm, comm_);
    number_list(
        options, "--bytes", comm_.bytes, "N[,...]",
        "Size of each rank's operand; all-gather: of what each rank gets, reduce-scatter: of what each "
        "gives. Rounded up to whole elements of 8 bytes; for these two, to as many for every rank")
        ->required();
    choice_list(options, "--operation", comm_.operations,
                words({"broadcast", "reduce", "all-reduce", "all-gather", "reduce-scatter", "send-receive"}),
                "Operations [broadcast]");
    choice_list(options, "--transport", comm_.transports, words(host_transports()),
                "What carries the data [mpi]");
    options.whole("--reps", comm_.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.text("--json", comm_.json, "F", "Writes the figures as JSON");
  }

  void define_kernels() {
    Options options = add_benchmark("kernels", "Kernels of the solvers", kernels, kernels_);
    number_list(options, "--rows", kernels_.rows, "M[,...]", "Rows on each rank")->required();
    number_list(options, "--cols", kernels_.cols, "N[,...]", "Columns [1]");
    choice_list(options, "--dtype", kernels_.types, program::scalar_types(), "Types of the elements [f64]");
    choice_list(options, "--kernel", kernels_.kernels, words(kernel_names()), "Kernels [all]");
    options.choice("--device", kernels_.device, words({"cpu", "gpu"}), "Where they run [cpu]");
    options.whole("--reps", kernels_.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.whole("--limit-mib", kernels_.limit_mib, "MIB", 0, about_limit_mib);
    options.text("--json", kernels_.json, "F", "Writes the figures as JSON");
  }

  void define_operators() {
    Options options =
        add_benchmark("operators", "Operators of the use cases, with their sizes", operators, operators_);
    choice_list(options, "--operator", operators_.operators, words(operator_names()), "Operators [all]");
    number_list(options, "--rhs", operators_.nrhs, "R[,...]", "Right-hand sides [1]");
    define_method(options, operators_.method);
  }

  MatmulArguments matmul_;
  SolveArguments solve_;
  CommArguments comm_;
  KernelArguments kernels_;
  OperatorArguments operators_;
};

}  // namespace

}  // namespace gridlops::bench

int main(int argc, char** argv) {
  gridlops::bench::GridlopsBench command_line;
  return gridlops::program::run_program(argc, argv, command_line);
}
