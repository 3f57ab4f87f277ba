// SPDX-License-Identifier: BSD-3-Clause
// Normal products give what the products give that they stand for, and CGLS in one pass what CGLS gives.
#include "gridlops/solve/solve_observer.hpp"

#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/catch.hpp"
#include "support/counted_reads.hpp"
#include "support/grids.hpp"
#include "support/reference.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <Scalar T>
Element<T> integers(std::uint64_t seed) {
  return [seed](Index i, Index j) { return small_integer<T>(seed, i, j); };
}

template <Scalar T>
DistMatrix<T> filled(const Space& space, Index columns, const Element<T>& element) {
  DistMatrix<T> X(space.grid, space.layout(columns));
  X.fill(element);
  return X;
}

constexpr MatrixMultOptions packed{.storage = Storage::packed};
constexpr MatrixMultOptions packed_stable{.column_stable = true, .storage = Storage::packed};

bool on_host(const ProcessGrid& grid) { return grid.backend()->memory_space() == MemorySpace::host; }

/// Elements are integers, so that sums are exact and products equal to the last bit.
template <Scalar T>
void check_normal_product(const LinearOperator<T>& op, Index columns) {
  const LinearOperator<T>* const A = &op;
  const Element<T> nan = [](Index, Index) { return T(std::numeric_limits<Real<T>>::quiet_NaN()); };
  const DistMatrix<T> P = filled(A->domain(), columns, integers<T>(2)),
                      R = filled(A->range(), columns, integers<T>(3));
  DistMatrix<T> Q = filled(A->range(), columns, nan), U = filled(A->domain(), columns, nan), V = U.clone();
  DistMatrix<T> q = Q.clone(), u = U.clone(), v = U.clone();
  A->apply(T(1), P, T(0), q);
  A->apply_adjoint(T(1), R, T(0), u);
  A->apply_adjoint(T(1), q, T(0), v);
  A->normal_product(P, R, Q, U, V);  // takes the memory, on which the ranks agree
  const TrafficSince pass(world());
  A->normal_product(P, R, Q, U, V);
  const ProcessGrid& grid = *A->domain().grid;
  CAPTURE(describe(grid), A->rows(), A->cols(), columns);
  RankCost modelled;
  if (grid.is_member())
    modelled = normal_product_cost({A->rows(), A->cols(), columns, scalar_type_of<T>}, grid.shape(),
                                   grid.my_row(), grid.my_col());
  if (A->has_one_pass()) {
    CHECK(pass.sent() == modelled.bytes_sent);
    CHECK(pass.received() == modelled.bytes_received);
    CHECK(pass.calls() == modelled.messages);
  }
  CHECK(everywhere(Q) == everywhere(q));
  CHECK(everywhere(U) == everywhere(u));
  CHECK(everywhere(V) == everywhere(v));
  A->apply(T(2), P, T(-1), q);
  A->apply_adjoint(T(2), R, T(-1), u);
  CHECK(everywhere(Q) == everywhere(q));
  CHECK(everywhere(U) == everywhere(u));
}

/// Checks that normal products take one pass on the host, and are right.
template <Scalar T>
void check_one_pass(const GridPtr& grid, Index m, Index n, Index columns,
                    const MatrixMultOptions& options = packed) {
  const OperatorPtr<T> A = dense_operator<T>(grid, Algorithm::stationary_a, m, n, integers<T>(1), options);
  REQUIRE(A->has_one_pass() == on_host(*grid));
  check_normal_product(*A, columns);
}

template <Scalar T>
Solution<T> run(SolverFunction<T> solver, const GridPtr& grid, const KnownSpectrum<T>& matrix,
                const SolveOptions& options, const Element<T>& guess = {}) {
  const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix, packed);
  const Solution<T> solution = solve<T>(solver, *A, 4, random_elements<T>(4), options, guess);
  if (grid->is_member()) {
    check_report(WholeSystem<T>(solver, matrix.rows(), matrix.cols(), Element<T>(matrix),
                                random_elements<T>(4), options, guess),
                 solution, grid->comm());
  }
  return solution;
}

/// The least ‖x − x_true‖ / ‖x_true‖ of any iterate, for b = A x_true and `noise` that is orthogonal to the
/// range of A. This is the geometric mean over eight right-hand sides, because chance decides when rounding
/// ends an iteration.
double best_error(SolverFunction<double> solver, const GridPtr& grid, const KnownSpectrum<double>& matrix,
                  double noise) {
  const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a, matrix, packed);
  const Index n = matrix.cols();
  constexpr Index trials = 8;
  double product = 1;
  for (Index trial = 0; trial < trials; ++trial) {
    const DistMatrix<double> truth = filled<double>(A->domain(), 1, random_elements<double>(5, trial));
    DistMatrix<double> B = filled<double>(A->range(), 1, [&](Index i, Index) { return matrix.left(i, n); });
    A->apply(1.0, truth, noise, B);
    DistMatrix<double> X(grid, A->domain().layout(1));
    std::vector<double> errors;  // squared, of this rank's part
    SolveOptions options;
    options.max_iterations = 400;
    options.tolerance = 0;
    options.observers = {after_each_iteration([&](const IterationInfo&) {
      double sum = 0;
      for (Index i = 0; i < X.local().rows; ++i) sum += std::norm(X.local()(i, 0) - truth.local()(i, 0));
      errors.push_back(sum);
      return false;
    })};
    solver(*A, B, X, options);
    grid->comm().all_reduce(errors, ReduceOp::sum);
    product *= std::sqrt(*std::min_element(errors.begin(), errors.end())) / column_norms(truth)[0];
  }
  return std::pow(product, 1.0 / trials);
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("One pass gives a product and two adjoints", "", Scalars) {
  using T = TestType;
  for (const auto& grid : all_grids()) {
    for (const Index columns : {0, 1, 3}) {
      check_one_pass<T>(grid, 37, 23, columns);
      check_one_pass<T>(grid, 2, 31, columns);  // fewer rows than ranks
      check_one_pass<T>(grid, 40, 1, columns, packed_stable);
      check_one_pass<T>(grid, 0, 5, columns);
      check_one_pass<T>(grid, 5, 0, columns);
    }
    check_one_pass<T>(grid, 300, 70, 2);  // several panels
  }
}

TEST_CASE("One pass sums chunk by chunk over a grid row") {
  for (const GridPtr& grid : all_grids()) {
    for (const Index columns : {1, 2}) {
      check_one_pass<double>(grid, 211, 9001, columns);
      check_one_pass<std::complex<float>>(grid, 83, 9001, columns, packed_stable);
    }
    if (!grid->is_member() || grid->cols() == 1) continue;
    const RankCost cost =
        normal_product_cost({211, 9001, 1, ScalarType::f64}, grid->shape(), grid->my_row(), grid->my_col());
    CHECK(cost.messages > 2 + 211 / (64 * grid->rows()));
  }
}

TEST_CASE("One pass gives the same bits each time, and with column-stable sums whatever columns are beside") {
  for (const GridPtr& grid : all_grids()) {
    for (const bool stable : {false, true}) {
      const OperatorPtr<double> A =
          dense_operator<double>(grid, Algorithm::stationary_a, 131, 2003, random_elements<double>(1),
                                 stable ? packed_stable : packed);
      std::vector<double> first;
      for (const Index columns : {5, 5, 3}) {
        const DistMatrix<double> P = filled(A->domain(), columns, random_elements<double>(2)),
                                 R = filled(A->range(), columns, random_elements<double>(3));
        DistMatrix<double> Q = R.clone(), U = P.clone(), V = P.clone();
        A->normal_product(P, R, Q, U, V);
        std::vector<double> found;
        for (const DistMatrix<double>* X : {&Q, &U, &V}) {
          const MatrixView<const double> local =
              X->local().col_block({0, std::min<Index>(X->local().cols, 3)});
          for (Index j = 0; j < local.cols; ++j)
            for (Index i = 0; i < local.rows; ++i) found.push_back(local(i, j));
        }
        CAPTURE(describe(*grid), stable, columns);
        if (first.empty()) first = found;
        if (columns == 5 || stable) CHECK(found == first);
      }
    }
  }
}

TEST_CASE("One pass allocates nothing the second time") {
  for (const auto& grid : all_grids()) {
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, 30, 20, integers<double>(1), packed);
    const DistMatrix<double> P = filled(A->domain(), 3, integers<double>(2)),
                             R = filled(A->range(), 3, integers<double>(3));
    DistMatrix<double> Q = R.clone(), U = P.clone(), V = P.clone();
    A->normal_product(P, R, Q, U, V);
    const Index before = grid->backend()->allocations();
    A->normal_product(P, R, Q, U, V);
    CHECK(grid->backend()->allocations() == before);
  }
}

TEST_CASE("Any operator has normal products, and those that pass over A once say so") {
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      const OperatorPtr<double> A = dense_operator<double>(grid, algorithm, 12, 9, integers<double>(1));
      CHECK_FALSE(A->has_one_pass());
      check_normal_product(*A, 3);
    }
    const OperatorPtr<double> block =
        dense_operator<double>(grid, Algorithm::block, 12, 9, integers<double>(1), packed);
    const OperatorPtr<double> A =
        dense_operator<double>(grid, Algorithm::stationary_a, 12, 9, integers<double>(1), packed);
    for (const OperatorPtr<double>& op : {block, adjoint(A)}) {
      CHECK_FALSE(op->has_one_pass());
      check_normal_product(*op, 2);
    }
  }
}

TEST_CASE("An iteration of CGLS in one pass reads a matrix once, within combinations too") {
  for (const GridPtr& grid : all_grids()) {
    const auto counted = std::make_shared<const CountedReads<double>>(
        dense_operator<double>(grid, Algorithm::stationary_a, 20, 9, random_elements<double>(1), packed));
    const OperatorPtr<double> A = counted, I = identity<double>(A->domain());
    const auto reads = [&](const OperatorPtr<double>& op, Index iterations, bool one_pass) {
      const DistMatrix<double> B = filled(op->range(), 2, random_elements<double>(2));
      DistMatrix<double> X(grid, op->domain().layout(2));
      SolveOptions options;
      options.max_iterations = iterations;
      options.tolerance = 0;
      options.one_pass = one_pass;
      const Index before = counted->reads();
      cgls(*op, B, X, options);
      return counted->reads() - before;
    };
    for (const OperatorPtr<double>& op : {A, scale(0.5, A), damped(A, 0.1), product(A, scale(2.0, I)),
                                          vertical_stack<double>({I, scale(3.0, A)})}) {
      if (!grid->is_member()) continue;
      CHECK(reads(op, 5, true) - reads(op, 3, true) == 2);
      CHECK(reads(op, 5, false) - reads(op, 3, false) == 4);
    }
  }
}

TEST_CASE("The operands of a normal product are checked") {
  const GridPtr grid = all_grids().front();
  const OperatorPtr<double> A =
      dense_operator<double>(grid, Algorithm::stationary_a, 12, 9, integers<double>(1), packed);
  const DistMatrix<double> P = filled(A->domain(), 2, integers<double>(2)),
                           R = filled(A->range(), 2, integers<double>(2));
  const auto refused = [&](const Space& P_space, const Space& U_space, Index R_columns) {
    const DistMatrix<double> P_ = filled(P_space, 2, integers<double>(2)),
                             R_ = filled(A->range(), R_columns, integers<double>(2));
    DistMatrix<double> Q = R.clone(), U(grid, U_space.layout(2)), V = P.clone();
    return message_of<Error>([&] { A->normal_product(P_, R_, Q, U, V); });
  };
  CHECK(refused(A->domain(), A->domain(), 3).find("2 and 3 columns") != std::string::npos);
  CHECK(refused(A->range(), A->domain(), 2).find("P and R: the model is 12 x 2") != std::string::npos);
  CHECK(refused(A->domain(), A->range(), 2).find("R to U: the model is 12 x 2") != std::string::npos);
}

TEMPLATE_TEST_CASE("CGLS in one pass does what CGLS does", "", float, double, std::complex<float>,
                   std::complex<double>) {
  using T = TestType;
  const Index m = 45, n = 23;
  for (const auto& grid : all_grids()) {
    for (const double damp : {0.0, 0.3}) {
      for (const bool has_guess : {false, true}) {
        const KnownSpectrum<T> matrix(m, n, geometric(n, 3));
        const Element<T> guess = has_guess ? random_elements<T>(9) : Element<T>{};
        SolveOptions options;
        options.damp = damp;
        const Solution<T> once = run<T>(one_pass_cgls, grid, matrix, options, guess);
        const Solution<T> twice = run<T>(cgls, grid, matrix, options, guess);
        if (!grid->is_member()) continue;
        CAPTURE(describe(*grid), damp, has_guess);
        CHECK(once.report.solver == "one-pass-cgls");
        for (Index j = 0; j < 4; ++j) {
          CHECK(once.verdict(j).reason == StopReason::converged);
          CHECK(std::abs(once.verdict(j).iterations - twice.verdict(j).iterations) <= 2);
          // Both solutions are within κ² times the tolerance.
          const double tolerance = sizeof(Real<T>) == 4 ? 1e-4 : 1e-8;
          CHECK(relative_difference(once.column(j), twice.column(j)) <= 100 * tolerance);
        }
      }
    }
  }
}

// One step solves the undamped equations, and leaves nothing but rounding of the difference of products.
TEMPLATE_TEST_CASE("CGLS in one pass does not lose columns where one step takes all of the residual", "",
                   float, double) {
  using T = TestType;
  constexpr Index trials = 40;
  for (const auto& grid : compact_grids()) {
    for (const Index m : {1, 3, 5}) {
      const KnownSpectrum<T> matrix(m, 20, std::vector<double>(static_cast<std::size_t>(m), 1.0));
      const OperatorPtr<T> A = dense_operator(grid, Algorithm::stationary_a, matrix, packed);
      SolveOptions options;
      options.damp = 0.01;
      options.tolerance = 0;
      options.max_iterations = 500;
      const Solution<T> once = solve<T>(one_pass_cgls, *A, trials, random_elements<T>(4), options),
                        twice = solve<T>(cgls, *A, trials, random_elements<T>(4), options);
      if (!grid->is_member()) continue;
      CAPTURE(describe(*grid), m);
      for (Index j = 0; j < trials; ++j) {
        CHECK(is_solved(once.verdict(j).reason));
        // The condition number of the damped system is 1e4.
        CHECK(relative_difference(once.column(j), twice.column(j)) <= 1e5 * epsilon_of<T>);
      }
    }
  }
}

TEST_CASE("CGLS in one pass is as accurate as CGLS on clustered spectra") {
  const Index m = 80, n = 40;
  const GridPtr grid =
      std::make_shared<const ProcessGrid>(world(), near_square(world().size()), make_backend());
  for (const double condition : {1e2, 1e4, 1e6, 1e8, 1e10}) {
    for (const int clusters : {2, 3, 5}) {
      if (world().size() > 1 && clusters != 3) continue;  // thousands of iterations each
      // The members of a cluster differ by up to a per mille.
      std::vector<double> values;
      for (Index k = 0; k < n; ++k) {
        const double cluster = static_cast<double>(k % clusters) / (clusters - 1);
        values.push_back(std::pow(condition, -cluster) * (1 + 1e-3 * counter_uniform(7, k, 0)));
      }
      const KnownSpectrum<double> matrix(m, n, values);
      // With a residual errors grow with κ²ε. Where that is not small, chance decides what either method
      // finds.
      for (const double noise : {0.0, 0.1}) {
        if (noise > 0 && condition > 1e6) continue;
        const double once = best_error(one_pass_cgls<double>, grid, matrix, noise);
        const double twice = best_error(cgls<double>, grid, matrix, noise);
        CAPTURE(condition, clusters, noise, once, twice);
        // Below κε chance decides, too.
        CHECK(once <= std::max(4 * twice, condition * epsilon_of<double>));
      }
    }
  }
}
