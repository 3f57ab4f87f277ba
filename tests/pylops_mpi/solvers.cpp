// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_solver.py and test_eigs.py: as many iterations as a rank has unknowns, as they come out
// of the textbook's loops.
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "pylops_mpi/plain_solvers.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <class Check>
void for_each_case(Check&& check) {
  const GridPtr grid = line_of_ranks();
  for (const SolverCase& of : solver_cases) {
    CAPTURE(of.rows, of.cols, of.guess, of.complex);
    with_type(of.complex, [&](auto type) { check(grid, of, type); });
  }
}

/// Each rank's matrix: random, with a diagonal that keeps its singular values from zero, as rounding would
/// otherwise decide the last iterates.
template <Scalar T>
OfRank<T> random_of_ranks(std::uint64_t seed) {
  return [seed](int rank, Index i, Index j) {
    return counter_random<T>(seed, 1000 * rank + i, j) + T(i == j ? 4.0 : 0.0);
  };
}

/// Each rank's AᴴA + 10⁻⁵ I.
template <Scalar T>
OfRank<T> positive_of_ranks(Index rows) {
  return [rows](int rank, Index i, Index j) {
    T sum(i == j ? 1e-5 : 0);
    for (Index k = 0; k < rows; ++k)
      sum += conjugate(counter_random<T>(1, 1000 * rank + k, i)) * counter_random<T>(1, 1000 * rank + k, j);
    return sum;
  };
}

/// A member of a stack, and what it is.
template <Scalar T>
struct Member {
  OperatorPtr<T> op;
  Whole<T> matrix;
};
template <Scalar T>
Member<T> member(const Space& range, const Space& domain, const OfRank<T>& element) {
  return {matrices_of_ranks(range, domain, element), whole_of_ranks(range, domain, element)};
}

SolveOptions exactly(Index iterations, bool guess, double damp = 0) {
  SolveOptions options;
  options.max_iterations = iterations;
  options.tolerance = 0;
  options.initial_guess = guess;
  options.damp = damp;
  return options;
}

template <Scalar T>
Vector<T> guess_of(const SolverCase& of, Index n) {
  return of.guess ? random_array<T>(9, n) : Vector<T>(static_cast<std::size_t>(n));
}

// The same operations in another order of sums. CG of these matrices makes more of rounding than CGLS does.
constexpr double cg_tolerance = 1e-9, cgls_tolerance = 1e-11;

}  // namespace

TEST_CASE("CG makes the iterates of its definition", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const SolverCase& of, auto type) {
    using T = decltype(type);
    const Space space = rows_on_ranks(grid, of.cols);
    const Member<T> A = member(space, space, positive_of_ranks<T>(of.rows));
    const Vector<T> b = random_array<T>(2, A.matrix.rows), x0 = guess_of<T>(of, A.matrix.cols);
    DistMatrix<T> X = column(space, x0);
    cg(*A.op, column(space, b), X, exactly(of.cols, of.guess));
    CHECK(difference(X, plain_cg(A.matrix, b, x0, static_cast<int>(of.cols))) <= cg_tolerance);
    // Two of them in a stack.
    const OfRank<T> element = positive_of_ranks<T>(of.rows + 7);
    const Member<T> B = member(space, space, element);
    const OperatorPtr<T> both = block_diagonal<T>({A.op, B.op});
    const Index n = A.matrix.cols;
    Whole<T> matrix{
        2 * n, 2 * n, dense<T>(2 * n, 2 * n, [&](Index i, Index j) {
          return i < n && j < n ? A.matrix(i, j) : i >= n && j >= n ? B.matrix(i - n, j - n) : T(0);
        })};
    const Vector<T> b2 = random_array<T>(2, 2 * n), x2 = guess_of<T>(of, 2 * n);
    const std::vector<Space> spaces{space, space};
    const auto stacked = [&](const Vector<T>& values) {
      DistMatrix<T> Y(grid, both->domain().layout(1));
      for (std::size_t k = 0; k < 2; ++k) {
        const auto begin = values.begin() + static_cast<Index>(k) * n;
        DistMatrix<T> rows = stack_rows(spaces, k, Y);
        copy(column(space, Vector<T>(begin, begin + n)), rows);
      }
      return Y;
    };
    DistMatrix<T> X2 = stacked(x2);
    cg(*both, stacked(b2), X2, exactly(of.cols, of.guess));
    const DistMatrix<T> expected = stacked(plain_cg(matrix, b2, x2, static_cast<int>(of.cols)));
    X2 -= expected;
    CHECK(column_norms(X2)[0] <= cg_tolerance * column_norms(expected)[0]);
  });
}

TEST_CASE("CGLS makes the iterates of its definition, wherever model and data are", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const SolverCase& of, auto type) {
    using T = decltype(type);
    for (const auto& [data_everywhere, model_everywhere] :
         {std::pair{false, false}, {true, false}, {false, true}}) {
      for (const double damp : {0.0, 0.3}) {
        CAPTURE(data_everywhere, model_everywhere, damp);
        const Space range = rows_on_ranks(grid, of.rows, data_everywhere),
                    domain = rows_on_ranks(grid, of.cols, model_everywhere);
        const Member<T> A = member(range, domain, random_of_ranks<T>(1));
        const Vector<T> b = random_array<T>(2, A.matrix.rows), x0 = guess_of<T>(of, A.matrix.cols);
        DistMatrix<T> X = column(domain, x0);
        cgls(*A.op, column(range, b), X, exactly(of.cols, of.guess, damp));
        CHECK(difference(X, plain_cgls(A.matrix, b, x0, damp, static_cast<int>(of.cols))) <= cgls_tolerance);
      }
    }
  });
}

TEST_CASE("CGLS of stacked operators makes the iterates of its definition", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const SolverCase& of, auto type) {
    using T = decltype(type);
    const Space range = rows_on_ranks(grid, of.rows), domain = rows_on_ranks(grid, of.cols);
    const Member<T> A = member(range, domain, random_of_ranks<T>(1)),
                    B = member(domain, domain, random_of_ranks<T>(5));
    const OperatorPtr<T> both = vertical_stack<T>({A.op, B.op});
    const Index m = A.matrix.rows, n = A.matrix.cols;
    const Whole<T> matrix{m + n, n, dense<T>(m + n, n, [&](Index i, Index j) {
                            return i < m ? A.matrix(i, j) : B.matrix(i - m, j);
                          })};
    const Vector<T> b = random_array<T>(2, m + n), x0 = guess_of<T>(of, n);
    DistMatrix<T> data(grid, both->range().layout(1)), X = column(domain, x0);
    DistMatrix<T> upper = stack_rows({range, domain}, 0, data), lower = stack_rows({range, domain}, 1, data);
    copy(column(range, Vector<T>(b.begin(), b.begin() + m)), upper);
    copy(column(domain, Vector<T>(b.begin() + m, b.end())), lower);
    cgls(*both, data, X, exactly(of.cols, of.guess));
    CHECK(difference(X, plain_cgls(matrix, b, x0, 0, static_cast<int>(of.cols))) <= cgls_tolerance);
  });
}

TEMPLATE_TEST_CASE("Power iteration finds the largest eigenvalue, of stacked operators too", "[pylops_mpi]",
                   double, std::complex<double>) {
  using T = TestType;
  const GridPtr grid = line_of_ranks();
  const Space space = rows_on_ranks(grid, 21);
  const Member<T> A = member(space, space, random_of_ranks<T>(1)),
                  B = member(space, space, random_of_ranks<T>(3));
  const double of_A = largest_eigenvalue(A.matrix), of_B = largest_eigenvalue(B.matrix);
  const auto check = [](const OperatorPtr<T>& op, double expected) {
    const auto found = power_iteration(*product(adjoint(op), op), 1000, 1e-8);
    CHECK(std::abs(found.eigenvalue) == Approx(expected).epsilon(1e-3));
  };
  check(A.op, of_A);
  check(block_diagonal<T>({A.op, B.op}), std::max(of_A, of_B));
}
