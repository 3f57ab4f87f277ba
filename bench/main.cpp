// SPDX-License-Identifier: BSD-3-Clause
#include "bench/benchmarks.hpp"
#include "command_line/option_parser.hpp"

int main(int argc, char** argv) {
  using namespace gridlops::bench;
  gridlops::program::CommandLine command_line(
      "gridlops-bench",
      "Times what GridLOps does against the limits of the machine, measured by the same ranks in the same "
      "run",
      "Lists: 16,100; 1..64 doubles from 1 to 64; 100..500+100 adds. Every combination is measured,\n"
      "and of lists that --zip names entry by entry: --rows 1000,2000 --grid 1x1,2x1 --zip rows,grid\n"
      "Measure on an idle machine, with ranks bound to cores and OPENBLAS_NUM_THREADS=1.",
      // Variables of the program gridlops, which has some subcommands of the same names.
      {"GRIDLOPS_CALIBRATE_", "GRIDLOPS_LSM_", "GRIDLOPS_MAKE_PROBLEM_", "GRIDLOPS_MDD_",
       "GRIDLOPS_MULTIPLY_", "GRIDLOPS_PLAN_", "GRIDLOPS_POSTSTACK_", "GRIDLOPS_REFLECTIVITY_",
       "GRIDLOPS_SOLVE_"},
      {{"matmul", "Products A X and A^H Y", define_matmul},
       {"solve", "Iterations of a least-squares solver", define_solve},
       {"comm", "Operations of communicators, on data that every rank verifies", define_comm},
       {"messages", "Messages by size and number between synchronisations, and which way is faster",
        define_messages},
       {"kernels", "Kernels of the solvers", define_kernels},
       {"operators", "Operators of the use cases, with their sizes", define_operators},
       {"compressed", "Products with a compressed matrix, in turn with the matrix itself",
        define_compressed}});
  return gridlops::program::run_program(argc, argv, command_line);
}
