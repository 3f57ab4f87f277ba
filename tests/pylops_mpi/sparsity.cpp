// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_sparsity.py.
#include "gridlops/solve/sparse_solver.hpp"
#include "pylops_mpi/plain_solvers.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Data of a few spikes.
template <Scalar T>
struct SparseProblem {
  Space range, domain;
  OperatorPtr<T> A;
  Whole<T> matrix;
  Vector<T> b;
  double step;

  SparseProblem(const GridPtr& grid, Index rows, Index cols, bool data_everywhere, bool model_everywhere)
      : range(rows_on_ranks(grid, rows, data_everywhere)),
        domain(rows_on_ranks(grid, cols, model_everywhere)) {
    const OfRank<T> element = [](int rank, Index i, Index j) {
      return counter_random<T>(1, 1000 * rank + i, j);
    };
    A = matrices_of_ranks(range, domain, element);
    matrix = whole_of_ranks(range, domain, element);
    Vector<T> x(static_cast<std::size_t>(matrix.cols));
    for (std::size_t i = 2; i < x.size(); i += 5) x[i] = T(i % 2 == 0 ? 1.0 : -2.0);
    b = times(matrix, x);
    step = 0.99 / largest_eigenvalue(matrix);
  }
};

SolveOptions options_of(double lambda, double step, Threshold kind, Index iterations) {
  SolveOptions options;
  options.lambda = lambda;
  options.step = step;
  options.threshold = kind;
  options.max_iterations = iterations;
  options.tolerance = 0;
  return options;
}

}  // namespace

TEST_CASE("ISTA and FISTA make the iterates of their definitions, wherever model and data are",
          "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  for (const auto& [rows, cols] : {std::pair<Index, Index>{11, 11}, {21, 11}, {11, 21}}) {
    for (const bool complex : {false, true}) {
      for (const auto& [data_everywhere, model_everywhere] :
           {std::pair{false, false}, {true, false}, {false, true}}) {
        with_type(complex, [&, rows = rows, cols = cols, data = data_everywhere,
                            model = model_everywhere](auto type) {
          using T = decltype(type);
          const SparseProblem<T> of(grid, rows, cols, data, model);
          const DistMatrix<T> B = column(of.range, of.b);
          const Vector<T> zero(static_cast<std::size_t>(of.matrix.cols));
          for (const Threshold kind : {Threshold::soft, Threshold::hard, Threshold::half}) {
            if (kind != Threshold::soft && (data || model)) continue;
            for (const bool momentum : {false, true}) {
              CAPTURE(rows, cols, complex, data, model, static_cast<int>(kind), momentum);
              constexpr int iterations = 200;
              // eps = 0.1 of PyLops-MPI.
              const SolveOptions options = options_of(0.05, of.step, kind, iterations);
              DistMatrix<T> X(grid, of.domain.layout(1));
              const SolveReport report = momentum ? fista(*of.A, B, X, options) : ista(*of.A, B, X, options);
              const Vector<T> expected =
                  plain_proximal_gradient(of.matrix, of.b, zero, kind, 0.05, of.step,
                                          momentum ? Momentum::fista : Momentum::none, iterations);
              CAPTURE(report.iterations, name_of(report.columns[0].reason));
              CHECK(made_its_iterations(report, iterations));
              // The half penalty is not convex: 200 steps with momentum make 1e-9 of one bit of b.
              CHECK(difference(X, expected) <= (kind == Threshold::half && momentum ? 1e-6 : 1e-8));
            }
          }
        });
      }
    }
  }
}

TEST_CASE("A step that is far too long ends with breakdown, and with finite numbers", "[pylops_mpi]") {
  // PyLops-MPI's cost becomes NaN, unless it is asked to watch the residual.
  const GridPtr grid = line_of_ranks();
  const SparseProblem<double> of(grid, 11, 11, false, false);
  const DistMatrix<double> B = column(of.range, of.b);
  for (const bool momentum : {false, true}) {
    DistMatrix<double> X(grid, of.domain.layout(1));
    const SolveOptions options = options_of(0.05, 1e5, Threshold::soft, 200);
    const SolveReport report = momentum ? fista(*of.A, B, X, options) : ista(*of.A, B, X, options);
    CHECK(report.columns[0].reason == StopReason::breakdown);
    CHECK(std::isfinite(column_norms(X)[0]));
  }
}
