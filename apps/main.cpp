// SPDX-License-Identifier: BSD-3-Clause
#include "command_line/option_parser.hpp"
#include "subcommands.hpp"

int main(int argc, char** argv) {
  using namespace gridlops::program;
  CommandLine command_line(
      "gridlops", "Distributed products and least-squares solutions with matrices in .npy and HDF5 files",
      "Runs alone or under mpirun. Exit status: 0 done, 1 a check failed, 2 wrong usage, 3 some\n"
      "column did not converge, 65 bad input, 70 internal error, 71 out of memory, 74 output not written,\n"
      "75 a rank was lost, or a checkpoint was asked for; docs/errors.md says what to do.",
      {"GRIDLOPS_BENCH_"},
      {{"make-problem", "Writes A.npy, B.npy and X_true.npy of a test problem", define_make_problem},
       {"compress", "Writes a matrix in tiles of low rank, with a certified error", define_compress},
       {"multiply", "Y = A X, or Y = A^H X", define_multiply},
       {"solve", "Solves A X = B, column by column: least squares, damped or not; Hermitian A; sparse X",
        define_solve},
       {"ridge", "Ridge of many targets, each with its own damping by cross-validation", define_ridge},
       {"plan", "Says how numbers of ranks would solve, and how long it takes", define_plan},
       {"calibrate", "Measures this machine: auto then chooses products by it, and plans can name it",
        define_calibrate},
       {"lsm", "Least-squares migration: the reflectors that seismic traces show", define_lsm},
       {"mdd", "Multi-dimensional deconvolution: the reflections between the sources of a kernel",
        define_mdd},
       {"poststack", "Post-stack inversion: the acoustic impedance that seismic traces show",
        define_poststack},
       {"reflectivity", "Sparse reflectivity: the spikes that seismic traces show", define_reflectivity},
       {"info", "What was built, what was found at run time, and advice", define_info},
       {"report", "Compares runs by their reports in a table", define_report}});
  return run_program(argc, argv, command_line);
}
