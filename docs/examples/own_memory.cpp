// SPDX-License-Identifier: BSD-3-Clause
// Matrices in memory of your own, as your program has them: the library works on them where they are, and
// copies nothing. Arrays whose rows lie one after the other (C, NumPy) are seen as their transposes, or
// converted by one call.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/local/matrix_view.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"

namespace gl = gridlops;

constexpr gl::Index m = 600, n = 40, nrhs = 3;

/// The problem: A is m × n, and B is AX for this X.
double element_of_A(gl::Index i, gl::Index j) { return gl::counter_uniform(1, i, j); }
double element_of_X(gl::Index i, gl::Index j) { return gl::counter_uniform(2, i, j); }

int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  // A grid of one row, where each rank has some columns of Aᵀ, which are rows of A.
  const auto grid = std::make_shared<gl::ProcessGrid>(
      session.world(), gl::GridShape{1, session.world().size()}, gl::make_host_backend());
  const gl::Layout layout = gl::matrix_layout(gl::Algorithm::stationary_a, *grid, n, m);
  const gl::Range mine = layout.col_range(*grid, grid->my_row(), grid->my_col());

  // My rows of A and of B, row after row. B is computed by a plain loop, to know what is right.
  std::vector<double> rows_of_A, rows_of_B;
  for (gl::Index i = mine.begin; i < mine.end(); ++i) {
    for (gl::Index j = 0; j < n; ++j) rows_of_A.push_back(element_of_A(i, j));
    for (gl::Index k = 0; k < nrhs; ++k) {
      double sum = 0;
      for (gl::Index j = 0; j < n; ++j) sum += element_of_A(i, j) * element_of_X(j, k);
      rows_of_B.push_back(sum);
    }
  }

  // My rows of A are columns of Aᵀ: a view of them is the block that the layout asks for. A is (Aᵀ)ᴴ. (For
  // complex numbers (Aᵀ)ᴴ is the conjugate of A; convert A as B below.)
  gl::DistMatrix<double> At(grid, layout, gl::MatrixView<double>(rows_of_A.data(), n, mine.size));
  const auto A = gl::adjoint(gl::matrix_mult(gl::Algorithm::stationary_a, std::move(At)));

  // B is needed column after column: one call converts my rows of it.
  auto B = gl::allocate_matrix<double>(grid, A->range().layout(nrhs));
  gl::transpose<double>({rows_of_B.data(), nrhs, mine.size}, B.local());

  // X comes into memory of mine, whose columns are three elements further apart than they are long.
  const gl::Index rows_of_X = A->domain().local_rows(), stride = rows_of_X + 3;
  std::vector<double> memory_of_X(static_cast<std::size_t>(stride * nrhs));
  gl::DistMatrix<double> X(grid, A->domain().layout(nrhs),
                           gl::MatrixView<double>(memory_of_X.data(), rows_of_X, nrhs, stride));

  gl::cgls(*A, B, X, {.tolerance = 1e-12});

  double error = 0;
  for (gl::Index k = 0; k < nrhs; ++k)
    for (gl::Index j = 0; j < rows_of_X; ++j) {
      const double x = memory_of_X[static_cast<std::size_t>(j + k * stride)];
      error = std::max(error, std::abs(x - element_of_X(X.local_row_range().begin + j, k)));
    }
  session.world().all_reduce(std::span(&error, 1), gl::ReduceOp::max);
  if (session.world().rank() == 0) std::printf("error %.1e\n", error);
  return error <= 1e-10 ? 0 : 1;
}
