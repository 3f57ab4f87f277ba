// SPDX-License-Identifier: BSD-3-Clause
// gridlops-bench-settings ROWS COLS RHS GRID ITERATIONS PAIRS SETTING SETTING: times solves under two
// settings of environment variables that sessions read, in one job. The script bench/settings starts it and
// explains its figures.
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/solver.hpp"
#include "machine/limits.hpp"

using namespace gridlops;

namespace {

struct Problem {
  Index rows, cols, nrhs;
  GridShape grid;
  Index iterations;
};

/// Sets each variable of "NAME=VALUE NAME=VALUE".
void set_environment(const std::string& setting) {
  std::istringstream words(setting);
  for (std::string word; words >> word;) {
    const std::size_t middle = word.find('=');
    if (middle == std::string::npos) throw UsageError("a setting has the form NAME=VALUE, not " + word);
    setenv(word.substr(0, middle).c_str(), word.substr(middle + 1).c_str(), 1);
  }
}

DistMatrix<double> random_matrix(const std::shared_ptr<const ProcessGrid>& grid, const Layout& layout,
                                 std::uint64_t seed) {
  DistMatrix<double> A(grid, layout);
  A.fill([seed](Index i, Index j) { return counter_random<double>(seed, i, j); });
  return A;
}

struct Cost {
  double seconds;  ///< of the slowest rank
  Index agreements;
};

/// Solves once by CGLS, in a new session with a new operator (collective over MPI_COMM_WORLD).
Cost cost_of_solve(const Problem& problem) {
  MpiSession session(MPI_COMM_WORLD);
  Communicator& world = session.world();
  const auto grid = std::make_shared<const ProcessGrid>(world, problem.grid, make_host_backend());
  const auto A = matrix_mult(
      Algorithm::stationary_a,
      random_matrix(grid, matrix_layout(Algorithm::stationary_a, *grid, problem.rows, problem.cols), 1),
      {.storage = Storage::packed});
  const DistMatrix<double> B = random_matrix(grid, A->range().layout(problem.nrhs), 2);
  DistMatrix<double> X(grid, A->domain().layout(problem.nrhs));
  SolveOptions options;
  options.max_iterations = problem.iterations;
  options.tolerance = 0;
  world.barrier();
  const Index agreements = grid->comm().traffic().agreements;
  const double begin = program::now();
  cgls(*A, B, X, options);
  const double seconds = program::maximum(*grid, program::now() - begin);
  return {seconds, grid->comm().traffic().agreements - agreements};
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc != 9) {
    std::fputs("gridlops-bench-settings is started by bench/settings\n", stderr);
    MPI_Abort(MPI_COMM_WORLD, 64);
  }
  const Problem problem{std::atol(argv[1]), std::atol(argv[2]), std::atol(argv[3]), parse_grid_shape(argv[4]),
                        std::atol(argv[5])};
  const long pairs = std::atol(argv[6]);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long pair = -1; pair < pairs; ++pair) {  // the first one warms up
    Cost costs[2];
    for (const int turn : {0, 1}) {
      const int which = (pair + turn) % 2 == 0 ? 0 : 1;
      set_environment(argv[7 + which]);
      costs[which] = cost_of_solve(problem);
    }
    if (pair >= 0 && rank == 0)
      std::printf("%.9f %ld %.9f %ld\n", costs[0].seconds, static_cast<long>(costs[0].agreements),
                  costs[1].seconds, static_cast<long>(costs[1].agreements));
  }
  MPI_Finalize();
  return 0;
}
