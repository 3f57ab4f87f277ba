// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include "bench/benchmarks.hpp"
#include "bench/comm/exchange.hpp"
#include "command_line/option_parser.hpp"
#include "gridlops/comm/mpi.hpp"

namespace gridlops::bench {

namespace {

using program::items;
using program::Names;
using program::Options;
using program::size_number;
using program::words;

CLI::Option* number_list(Options& options, const char* name, std::vector<Index>& values,
                         const char* placeholder, const char* about) {
  const auto parse = [&values](const std::string& text) { values = program::numbers(text); };
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
             "GRIDLOPS_MACHINE", "GRIDLOPS_MULTIPLY_", "GRIDLOPS_PLAN_", "GRIDLOPS_POSTSTACK_",
             "GRIDLOPS_REFLECTIVITY_", "GRIDLOPS_SOLVE_"}) {
    define_matmul();
    define_solve();
    define_comm();
    define_messages();
    define_calibrate();
    define_kernels();
    define_operators();
  }

 private:
  template <class Arguments>
  Options add_benchmark(const char* name, const char* about,
                        ExitStatus (*run)(Communicator& world, const Arguments& arguments),
                        const Arguments& arguments) {
    return add_subcommand(name, about,
                          [run, &arguments](Communicator& world) { return run(world, arguments); });
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
    choice_list(options, "--solver", solve_.solvers, program::solvers(),
                "Methods; cg: with a positive definite matrix [cgls]");
    options.flag("--one-pass", solve_.one_pass, "cgls: reads A once in an iteration, in stationary-a");
    options.whole("--iterations", solve_.iterations, "K", 1, "Iterations in each repetition [10]");
    define_common(options, solve_.cases, solve_.method);
  }

  void define_comm() {
    Options options =
        add_benchmark("comm", "Operations of communicators, on data that every rank verifies", comm, comm_);
    number_list(
        options, "--bytes", comm_.bytes, "N[,...]",
        "Size of the whole operand: where ranks have parts of one, of all parts together; 64K, 1M, 8..16M*4. "
        "Rounded up to whole elements, and to equal parts")
        ->required();
    Names<std::vector<std::string>> operations{{"all", {}}};
    for (const Operation& operation : all_operations()) {
      operations.front().second.emplace_back(operation.name);
      operations.push_back({operation.name, {operation.name}});
    }
    const auto take_operations = [this, operations](const std::string& text) {
      comm_.operations.clear();
      for (const std::string& item : items(text))
        for (const std::string& name : program::value_of(item, operations)) comm_.operations.push_back(name);
    };
    options.parsed("--operation", take_operations, program::joined(operations, "|") + "[,...]",
                   "Operations [broadcast]");
    choice_list(options, "--transport", comm_.transports, program::transports(),
                "What carries the data [mpi]");
    std::vector<std::string> types;
    for (const TravelType& type : travel_types()) types.emplace_back(type.name);
    choice_list(options, "--dtype", comm_.types, words(types), "Types of the elements [f64]");
    options.choice(
        "--reduction", comm_.reduction,
        Names<ReduceOp>{
            {"sum", ReduceOp::sum}, {"prod", ReduceOp::prod}, {"min", ReduceOp::min}, {"max", ReduceOp::max}},
        "How operands are reduced [sum]");
    options.whole("--root", comm_.root, "R", 0, "The rank that has or gets the whole operand [0]");
    const auto take_places = [this](const std::string& text) {
      const std::string place = program::value_of(text, words({"in", "out", "both"}));
      comm_.in_place = place != "out";
      comm_.out_of_place = place != "in";
    };
    options.parsed("--place", take_places, "in|out|both", "Whether a rank's part lies in the whole [both]");
    options.parsed(
        "--grid", [this](const std::string& text) { comm_.grid = parse_grid_shape(text); }, "PxQ",
        "Process grid [near-square]");
    choice_list(options, "--over", comm_.over, words({"world", "row", "column"}),
                "All ranks of the grid, or all its rows or columns at once [world]");
    options.choice("--device", comm_.device, words({"cpu", "gpu"}), "Where operands live [cpu]");
    options.whole("--warm-up", comm_.warm_up, "W", 0, "Operations before the first that is timed [5]");
    options.whole("--reps", comm_.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.text("--json", comm_.json, "F", "Writes the figures as JSON");
  }

  void define_messages() {
    Options options = add_benchmark(
        "messages", "Messages by size and number between synchronisations, and which way is faster", messages,
        messages_);
    number_list(options, "--bytes", messages_.bytes, "N[,...]",
                "Sizes of a message, whole numbers of 8 bytes [8..2M*8]");
    number_list(options, "--messages", messages_.messages, "K[,...]",
                "How many are sent between two synchronisations [1..64*4]");
    options.parsed(
        "--up-to", [this](const std::string& text) { messages_.up_to = size_number(text, 1024); }, "N",
        "Largest operand, in bytes, for which ways of an operation are compared [16M]");
    options.choice("--device", messages_.device, words({"cpu", "gpu"}),
                   "Where operands live; gpu: NCCL [cpu]");
    options.whole("--reps", messages_.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.text("--json", messages_.json, "F", "Writes the figures as JSON");
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

  void define_calibrate() {
    Options options = add_benchmark("calibrate", "What this machine does in a second, for plans of gridlops",
                                    calibrate, calibrate_);
    options.text("--json", calibrate_.machine, "FILE", "The file of the machine")->required();
    choice_list(options, "--transport", calibrate_.transports, program::transports(),
                "What carries the data [mpi,chain; of a GPU nccl,mpi]");
    options.choice("--device", calibrate_.device, words({"cpu", "gpu"}),
                   "Where matrices live and products run [cpu]");
    options.whole("--reps", calibrate_.repetitions, "K", 1, "Repetitions; the median counts [5]");
    options.whole("--limit-order", calibrate_.limit_order, "N", 1,
                  "Order of the product that measures the compute limit [1024]");
    options.whole("--limit-mib", calibrate_.limit_mib, "MIB", 0, about_limit_mib);
  }

  CalibrateArguments calibrate_;
  MatmulArguments matmul_;
  SolveArguments solve_;
  CommArguments comm_;
  MessageArguments messages_;
  KernelArguments kernels_;
  OperatorArguments operators_;
};

}  // namespace

}  // namespace gridlops::bench

int main(int argc, char** argv) {
  gridlops::bench::GridlopsBench command_line;
  return gridlops::program::run_program(argc, argv, command_line);
}
