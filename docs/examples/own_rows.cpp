// SPDX-License-Identifier: BSD-3-Clause
// A dense matrix whose rows lie on the ranks as your program has them, uneven and in no order, plus an
// operator of your own. LSQR is watched, suspended and restarted; block CGLS solves the same problem.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "gridlops/gridlops.hpp"

namespace gl = gridlops;
using gl::Index, gl::MatrixView;
using Matrix = gl::DistMatrix<double>;

constexpr Index m = 200, n = 30, nrhs = 4;

/// The problem: B = D X + t xᵀ, where t is i/100 in row i, and x is the first row of this X.
double element_of_D(Index i, Index j) { return gl::counter_uniform(1, i, j); }
double element_of_X(Index j, Index k) { return gl::counter_uniform(2, j, k); }

double solve(MPI_Comm ranks) {
  const auto comm = gl::make_mpi_communicator(ranks);
  const auto grid =
      std::make_shared<gl::ProcessGrid>(*comm, gl::GridShape{comm->size(), 1}, gl::make_host_backend());

  // My rows, and my block of D, which stays where it is. P will put results in order.
  std::vector<Index> rows;
  for (Index i = m; i-- > 0;)
    if (i * i % 7 % comm->size() == comm->rank()) rows.push_back(i);
  std::vector<double> block, t;
  for (Index j = 0; j < n; ++j)
    for (const Index i : rows) block.push_back(element_of_D(i, j));
  for (const Index i : rows) t.push_back(0.01 * static_cast<double>(i));
  const auto P = gl::scattered_rows<double>(gl::array_space(grid, {m}, 0), rows);
  gl::Layout layout = gl::matrix_layout(gl::Algorithm::stationary_a, *grid, m, n);
  layout.rows.partition = P->domain().rows.partition;
  const MatrixView<double> mine(block.data(), P->domain().local_rows(), n);
  const auto D = gl::matrix_mult(gl::Algorithm::stationary_a, Matrix(grid, layout, mine));

  // t xᵀ needs the first row of X on every rank, D a part of X on each. identity() moves X to all.
  const gl::Space whole = gl::moved_to(gl::Axis::uncut, D->domain());
  const auto forward = [t](MatrixView<const double> X, MatrixView<double> Y) {
    for (Index k = 0; k < Y.cols; ++k)
      for (Index i = 0; i < Y.rows; ++i) Y(i, k) = t[static_cast<std::size_t>(i)] * X(0, k);
  };
  const auto adjoint = [t](MatrixView<const double> Y, MatrixView<double> X) {
    for (Index k = 0; k < X.cols; ++k) {
      std::fill_n(X.column(k), X.rows, 0.0);
      for (Index i = 0; i < Y.rows; ++i) X(0, k) += t[static_cast<std::size_t>(i)] * Y(i, k);
    }
  };
  const auto own = gl::local_operator<double>(D->range(), whole, forward, adjoint);
  const auto A = gl::sum(D, gl::product(own, gl::identity<double>(whole, D->domain())));

  const gl::Layout model = A->domain().layout(nrhs), data = A->range().layout(nrhs);
  Matrix truth(grid, model), X(grid, model), Z(grid, model), B(grid, data);
  truth.fill(element_of_X);
  A->apply(1, truth, 0, B);

  // After five iterations this job is to end. The next one goes on where it was.
  bool is_late = false;
  gl::SolveOptions options{.tolerance = 1e-12};
  options.observers = {gl::after_each_iteration([&](const gl::IterationInfo& now) {
    const double test = std::min(now.residual_tests[0], now.gradient_tests[0]);
    if (comm->rank() == 0) std::printf("%d: %.1e\n", static_cast<int>(now.iteration), test);
    is_late = now.iteration == 5;
    return false;  // true would end the solver with the X that it has
  })};
  const std::string folder = "own_rows-" + std::to_string(comm->size());
  if (comm->rank() == 0) std::filesystem::remove_all(folder);
  options.checkpoint = {.directory = folder, .requested = [&] { return is_late; }};
  try {
    gl::lsqr(*A, B, X, options);
    return 1;
  } catch (const gl::Suspended&) {
    options.checkpoint = {.restart = folder};
  }
  gl::lsqr(*A, B, X, options);
  gl::block_cgls(*A, B, Z, {.tolerance = 1e-12});

  // The data that X predicts, with the numbers of rows.
  Matrix predicted(grid, P->range().layout(nrhs)), expected(grid, predicted.layout());
  A->apply(1, X, 0, B);
  P->apply(1, B, 0, predicted);
  expected.fill([](Index i, Index k) {
    double b = 0.01 * static_cast<double>(i) * element_of_X(0, k);
    for (Index j = 0; j < n; ++j) b += element_of_D(i, j) * element_of_X(j, k);
    return b;
  });
  if (comm->rank() == 0) std::filesystem::remove_all(folder);
  predicted -= expected;
  X -= truth;
  Z -= truth;
  return std::max({gl::frobenius_norm(predicted), gl::frobenius_norm(X), gl::frobenius_norm(Z)});
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double error = solve(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("error %.1e\n", error);
  MPI_Finalize();
  return error <= 1e-8 ? 0 : 1;
}
