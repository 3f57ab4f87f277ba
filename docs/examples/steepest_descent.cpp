// SPDX-License-Identifier: BSD-3-Clause
// A solver of one's own for many right-hand sides: steepest descent for least squares. One reduction an
// iteration, nothing is allocated in the loop, and every column has its own step.
#include <cmath>
#include <cstdio>

#include "gridlops/base/random.hpp"
#include "gridlops/comm/failure.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/matrix_mult.hpp"

namespace gl = gridlops;

/// Minimises ‖A xⱼ − bⱼ‖ for every column j, from the X that is there, until ‖Aᴴ(b − Ax)‖ ≤ tolerance for
/// all. Ranks that disagree, or have not enough memory, all throw alike.
template <gl::Scalar T>
gl::Index steepest_descent(const gl::LinearOperator<T>& A, const gl::ConstDistMatrix<T>& B,
                           gl::DistMatrix<T>& X, double tolerance, gl::Index max_iterations) {
  gl::agree(B.grid(), "steepest descent", [&](gl::Agreement& agreement) {
    agreement.on("the tolerance", tolerance).on("the limit of iterations", max_iterations);
    A.require_operands(X, B);
  });
  auto r = gl::allocate_matrix<T>(B.grid(), B.layout()), q = gl::allocate_matrix<T>(B.grid(), B.layout()),
       s = gl::allocate_matrix<T>(X.grid(), X.layout());
  copy(B, r);
  gl::ColumnSums<T> sums(B.grid());
  A.apply(-1, X, 1, r);
  gl::Index iteration = 0;
  for (; iteration < max_iterations; ++iteration) {
    A.apply_adjoint(1, r, 0, s);                      // s = Aᴴ r, the gradient
    A.apply(1, s, 0, q);                              // q = A s
    const auto [ss, qq] = sums(norm2(s), norm2(q));   // one reduction for all columns
    if (largest(ss) <= tolerance * tolerance) break;  // the same bits, and the same way, on all ranks
    const gl::ColumnScalars alpha = ratio(ss, qq);    // α = ‖s‖²/‖As‖², 0 where s is 0
    update(axpy(alpha, s, X), axpy(-alpha, q, r));    // X += α s, r −= α q
  }
  return iteration;
}

/// The error of X = argmin ‖AX − AX*‖ for a random X*.
int main(int argc, char** argv) {
  gl::MpiSession session(&argc, &argv);
  const auto grid = std::make_shared<gl::ProcessGrid>(
      session.world(), gl::GridShape{1, session.world().size()}, gl::make_host_backend());
  auto matrix =
      gl::allocate_matrix<double>(grid, gl::matrix_layout(gl::Algorithm::stationary_a, *grid, 600, 40));
  matrix.fill([](gl::Index i, gl::Index j) { return gl::counter_uniform(1, i, j); });
  const auto A = gl::matrix_mult(gl::Algorithm::stationary_a, std::move(matrix));
  auto truth = gl::allocate_matrix<double>(grid, A->domain().layout(8));
  auto X = gl::allocate_matrix<double>(grid, truth.layout());
  auto B = gl::allocate_matrix<double>(grid, A->range().layout(8));
  truth.fill([](gl::Index i, gl::Index j) { return gl::counter_uniform(2, i, j); });
  A->apply(1, truth, 0, B);
  X.set_zero();
  const gl::Index iterations = steepest_descent(*A, B, X, 1e-9, 1000);
  X -= truth;
  gl::ColumnSums<double> sums(grid);
  const auto [errors] = sums(norm2(X));
  const double error = std::sqrt(largest(errors));
  if (session.world().rank() == 0)
    std::printf("%lld iterations, error %.1e\n", static_cast<long long>(iterations), error);
  return error <= 1e-9 ? 0 : 1;
}
