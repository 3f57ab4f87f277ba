// SPDX-License-Identifier: BSD-3-Clause
// A factor takes the place of iterations when they have taken long enough, and only then.
#include "gridlops/solve/solve_or_factor.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "comm/failure/failure.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "solve/methods/factor_problems.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr double forever = std::numeric_limits<double>::infinity();

/// Right-hand sides, and solutions that begin from a guess, if there is one.
template <Scalar T>
struct Operands {
  Operands(const LinearOperator<T>& A, const Element<T>& guess, Index nrhs = 5)
      : B(A.range().grid, A.range().layout(nrhs)), X(A.domain().grid, A.domain().layout(nrhs)) {
    B.fill(random_elements<T>(4));
    X.fill(guess ? guess : [](Index, Index) { return T(77); });
  }
  DistMatrix<T> B, X;
};

/// X of a solver alone, and its verdicts.
template <Scalar T>
std::pair<std::vector<T>, std::vector<double>> alone(Solver solver, const LinearOperator<T>& A,
                                                     const SolveOptions& options, const Element<T>& guess) {
  Operands<T> of(A, guess);
  const SolveReport report = solve(solver, A, of.B, of.X, options);
  return {everywhere<T>(of.X), numbers_in(report)};
}

class Observer final : public SolveObserver {
 public:
  std::function<bool(const IterationInfo&)> act = [](const IterationInfo&) { return false; };
  std::string text;

  void start(const SolveStart& start) override { text += start.solver + ";"; }
  bool step(const IterationInfo& info) override { return act(info); }
  void end(const SolveReport& report) override { text += "end " + report.solver + ";"; }
};

}  // namespace

TEMPLATE_TEST_CASE("X is that of the solver that began, or exactly that of the direct solver", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::summa}) {
      for (const auto& [m, n] : factor_shapes) {
        const OperatorPtr<T> A =
            dense_operator(grid, algorithm, KnownSpectrum<T>(m, n, geometric(std::min(m, n), 30)));
        for (const Solver first : {Solver::cgls, Solver::block_cgls}) {
          if (first == Solver::block_cgls && algorithm != Algorithm::stationary_a) continue;
          for (const Element<T>& guess : {Element<T>(), random_elements<T>(9)}) {
            for (const Index batch : {0, 2}) {
              CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), m, n, name_of(first), batch,
                      bool(guess));
              SolveOptions options{
                  .max_iterations = 500, .damp = 0.1, .initial_guess = bool(guess), .batch = batch};
              Operands<T> patient(*A, guess), impatient(*A, guess);
              const SolvedOrFactored slow =
                  solve_or_factor(first, *A, patient.B, patient.X, forever, options);
              const SolvedOrFactored fast = solve_or_factor(first, *A, impatient.B, impatient.X, 0, options);
              const auto by_first = alone(first, *A, options, guess),
                         by_direct = alone(Solver::direct, *A, options, guess);
              CHECK(!slow.by_factor);
              CHECK(everywhere<T>(patient.X) == by_first.first);
              CHECK(numbers_in(slow.report) == by_first.second);
              if (!grid->is_member()) continue;
              // Where one iteration is enough, it was not in vain.
              CHECK(fast.by_factor == (slow.report.iterations > 1));
              if (!fast.by_factor) continue;
              CHECK(!fast.at_limit);
              CHECK(fast.iterations <= (batch == 0 ? 1 : 3));  // batches of one iteration end before
              CHECK(fast.seconds > 0);
              CHECK(fast.report.solver == "direct");
              CHECK(everywhere<T>(impatient.X) == by_direct.first);
              CHECK(numbers_in(fast.report) == by_direct.second);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("A factor takes over at the iteration limit, and not where somebody asked for the end") {
  for (const auto& grid : compact_grids()) {
    CAPTURE(grid->rows(), grid->cols());
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 1e3)));
    const auto diary = std::make_shared<Observer>();
    SolveOptions options{.max_iterations = 3, .batch = 2, .observers = {diary}};
    Operands<double> of(*A, {});
    SolvedOrFactored solved = solve_or_factor(Solver::cgls, *A, of.B, of.X, forever, options);
    if (grid->is_member()) {
      CHECK((solved.by_factor && solved.at_limit));
      CHECK(solved.iterations == 9);
      CHECK(std::all_of(solved.report.columns.begin(), solved.report.columns.end(),
                        [](const ColumnReport& column) { return is_solved(column.reason); }));
      CHECK(diary->text == "cgls;end cgls;direct;end direct;");
    }
    diary->text.clear();
    solve_or_factor(Solver::cgls, *A, of.B, of.X, 0, options);
    if (grid->is_member()) CHECK(diary->text == "cgls;direct;end direct;");
    diary->act = [&](const IterationInfo& info) { return info.iteration == 2 && grid->comm().rank() == 0; };
    solved = solve_or_factor(Solver::cgls, *A, of.B, of.X, forever, options);
    if (grid->is_member()) {
      CHECK(!solved.by_factor);
      CHECK(solved.report.columns[0].reason == StopReason::user_stop);
    }
    options.max_iterations = 0;
    CHECK(!solve_or_factor(Solver::cgls, *A, of.B, of.X, forever, options).by_factor);
  }
}

TEST_CASE("A column at the iteration limit is given to a factor, though another has its residual") {
  for (const auto& grid : compact_grids()) {
    CAPTURE(grid->rows(), grid->cols());
    const Element<double> matrix = KnownSpectrum<double>(45, 23, geometric(23, 1e3));
    const OperatorPtr<double> A = dense_operator<double>(grid, Algorithm::stationary_a, 45, 23, matrix);
    Operands<double> of(*A, {}, 2);
    // Half of the other's residual is out of reach, since the range of A is half of the space.
    of.B.fill([&](Index i, Index j) {
      double in_range = 0;
      for (Index k = 0; k < 23; ++k) in_range += matrix(i, k);
      return j == 0 ? in_range : random_elements<double>(4)(i, j);
    });
    const SolveOptions options{.max_iterations = 5, .residual_ratio = 0.5};
    const SolveReport alone = solve(Solver::cgls, *A, of.B, of.X, options);
    const SolvedOrFactored solved = solve_or_factor(Solver::cgls, *A, of.B, of.X, forever, options);
    if (!grid->is_member()) continue;
    CHECK(alone.columns[0].reason == StopReason::user_stop);
    CHECK(alone.columns[1].reason == StopReason::iteration_limit);
    CHECK((solved.by_factor && solved.at_limit));
  }
}

TEST_CASE("When the time is over nothing else of the first solve is done, and no failure is left") {
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 30)));
    const auto counts = std::make_shared<Observer>();
    Index batches = 0;
    counts->act = [&](const IterationInfo& info) {
      batches += info.at_start ? 1 : 0;
      return false;
    };
    Operands<double> of(*A, {});
    // As in a product of another solver.
    FailureScope around;
    const SolvedOrFactored solved =
        solve_or_factor(Solver::cgls, *A, of.B, of.X, 0, {.batch = 2, .observers = {counts}});
    CHECK((solved.by_factor && !solved.at_limit));
    CHECK(solved.report.solver == "direct");
    CHECK_NOTHROW(around.settle(grid->comm()));
    CHECK(batches == 1 + 3);
    // An iteration of two columns, and direct.
    CHECK(A->activity().forward_columns == 2 + 5);
  }
}

TEST_CASE("An end that an observer asks for when the time is over stays one") {
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 1e3)));
    const auto ends = std::make_shared<Observer>();
    ends->act = [&](const IterationInfo& info) {
      return info.iteration == 1 && grid->comm().rank() == grid->comm().size() - 1;
    };
    for (const Index most : {1000, 1}) {
      Operands<double> of(*A, {});
      const SolvedOrFactored solved =
          solve_or_factor(Solver::cgls, *A, of.B, of.X, 0, {.max_iterations = most, .observers = {ends}});
      CHECK(!solved.by_factor);
      CHECK(solved.report.solver == "cgls");
      CHECK(solved.report.columns[0].reason ==
            (most == 1 ? StopReason::iteration_limit : StopReason::user_stop));
    }
  }
}

TEST_CASE("Ranks that nobody compares may be given other seconds") {
  const Check before = check_level();
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 1e3)));
    Operands<double> of(*A, {});
    const bool is_last = grid->comm().rank() == grid->comm().size() - 1;
    set_check_level(Check::off);
    const SolvedOrFactored solved =
        solve_or_factor(Solver::cgls, *A, of.B, of.X, is_last ? forever : 0, {.max_iterations = 500});
    set_check_level(before);
    CHECK(!solved.by_factor);
  }
}

TEST_CASE("What an observer throws on one rank is not lost when the time is over") {
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(45, 23, geometric(23, 1e3)));
    const auto fails = std::make_shared<Observer>();
    fails->act = [&](const IterationInfo& info) {
      if (info.iteration == 1 && grid->comm().rank() == grid->comm().size() - 1)
        throw InputError("the last rank fails");
      return false;
    };
    Operands<double> of(*A, {});
    CHECK_THROWS_AS(solve_or_factor(Solver::cgls, *A, of.B, of.X, 0, {.observers = {fails}}), InputError);
  }
}

TEST_CASE("Solvers and options that the direct solver cannot follow are refused") {
  for (const auto& grid : compact_grids()) {
    const OperatorPtr<double> A =
        dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(5, 3, geometric(3, 10)));
    Operands<double> of(*A, {});
    const auto refuses = [&](Solver first, double seconds, const SolveOptions& options) {
      CHECK_THROWS_AS(solve_or_factor(first, *A, of.B, of.X, seconds, options), UsageError);
    };
    for (const Solver first : {Solver::direct, Solver::lsqr, Solver::pcgls, Solver::cg})
      refuses(first, 1, {});
    refuses(Solver::cgls, -1, {});
    refuses(Solver::cgls, std::numeric_limits<double>::quiet_NaN(), {});
    refuses(Solver::cgls, 1, {.atol = 0.1});
    SolveOptions saves;
    saves.checkpoint.directory = "nowhere";
    refuses(Solver::cgls, 1, saves);
    // One pass is a way of cgls alone.
    CHECK(solve_or_factor(Solver::cgls, *A, of.B, of.X, 0, {.one_pass = true}).report.columns.size() ==
          (grid->is_member() ? 5U : 0U));
  }
}
