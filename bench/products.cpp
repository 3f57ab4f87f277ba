// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "bench/benchmarks.hpp"
#include "bench/measure/results.hpp"
#include "command_line/option_parser.hpp"

// The options of the benchmarks of products and solvers. All libraries have the same options.

namespace gridlops::bench {

namespace {

void define_cases(Options& options, Cases& cases) {
  options.numbers("--rows", cases.rows, "M[,...]", "Rows of A")->required();
  options.numbers("--cols", cases.cols, "N[,...]", "Columns of A")->required();
  options.numbers("--rhs", cases.nrhs, "R[,...]", "Right-hand sides [1]");
  options.choices("--dtype", cases.types, program::scalar_types(), "Types of the elements [f64]");
  options.parsed(
      "--grid",
      [&cases](const std::string& text) {
        cases.grids.clear();
        for (const std::string& item : program::items(text)) cases.grids.push_back(parse_grid_shape(item));
      },
      "PxQ[,...]", "Process grids [near-square]");
  options.choices("--algorithm", cases.algorithms, program::algorithms(), "How products are formed [auto]");
  options.choices("--transport", cases.transports, program::transports(), "What carries the data [auto]");
  options.choice("--device", cases.device, words({"cpu", "gpu"}),
                 "Where matrices live and products run [cpu]");
  options.whole("--panel", cases.panel, "W", 0, "Width of the panels that travel [0: chosen]");
  options.choices("--storage", cases.storages, program::storages(),
                  "block, stationary-a: how A is stored [auto]");
  options.choices("--zip", cases.zipped, words(list_names()),
                  "Lists of the same length that run side by side, entry by entry");
}

}  // namespace

void define_method(Options& options, Method& method) {
  options.whole("--reps", method.repetitions, "K", 1, "Repetitions; the median counts [5]");
  options.whole("--limit-order", method.limit_order, "N", 1,
                "Order of the GEMM that measures the compute limit [2048]");
  options.whole("--limit-mib", method.limit_mib, "MIB", 0, about_limit_mib);
  options.text("--json", method.json, "F", "Writes the figures as JSON");
}

Action define_matmul(Options& options) {
  const auto arguments = std::make_shared<MatmulArguments>();
  options.flag("--adjoint", arguments->adjoint, "Products with the conjugate transpose of A");
  options.flag("--both", arguments->both, "Both directions");
  options.flag("--high-plane", arguments->high_plane, "Storage planes: products from the high plane, too");
  define_cases(options, arguments->cases);
  define_method(options, arguments->method);
  explain_columns_of_products(options);
  return [arguments](Communicator& world) { return matmul(world, *arguments); };
}

Action define_solve(Options& options) {
  const auto arguments = std::make_shared<SolveArguments>();
  options.choices("--solver", arguments->solvers, program::solvers(),
                  "Methods; cg: with a positive definite matrix [cgls]");
  options.flag("--one-pass", arguments->one_pass, "cgls: reads A once in an iteration, in stationary-a");
  options.whole("--iterations", arguments->iterations, "K", 1, "Iterations in each repetition [10]");
  define_cases(options, arguments->cases);
  define_method(options, arguments->method);
  explain_columns_of_products(options);
  return [arguments](Communicator& world) { return solve(world, *arguments); };
}

}  // namespace gridlops::bench
