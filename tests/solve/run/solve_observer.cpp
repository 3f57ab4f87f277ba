// SPDX-License-Identifier: BSD-3-Clause
// User code is told of a solve, and can end it.
#include "gridlops/solve/solve_observer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 30, n = 17, nrhs = 6;

/// Writes down what it is told, and asks for the end in one iteration, on one rank.
class Diary final : public SolveObserver {
 public:
  explicit Diary(Index end_at = -1, bool asks = true) : end_at_(asks ? end_at : -1) {}
  void start(const SolveStart& start) override {
    text += "start " + start.solver + ";";
    sizes = {start.rows, start.cols, start.nrhs, start.max_iterations};
    damp = start.damp;
  }
  bool step(const IterationInfo& info) override {
    text += std::to_string(info.iteration) + ";";
    residual_norms.emplace_back(info.residual_norms.begin(), info.residual_norms.end());
    x_norms.emplace_back(info.x_norms.begin(), info.x_norms.end());
    return info.iteration == end_at_;
  }
  void end(const SolveReport& report) override {
    text += "end;";
    verdicts = numbers_in(report);
  }

  std::string text;
  std::vector<Index> sizes;
  double damp = 0;
  std::vector<std::vector<double>> residual_norms, x_norms;
  std::vector<double> verdicts;

 private:
  Index end_at_;
};

template <Scalar T>
SolveReport sparse(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options) {
  SolveOptions sparse_options = options;
  sparse_options.lambda = 0.01;
  return fista(A, B, X, sparse_options);
}

const std::vector<std::pair<std::string, SolverFunction<double>>>& least_squares_solvers() {
  static const std::vector<std::pair<std::string, SolverFunction<double>>> all{
      {"cgls", cgls<double>},
      {"lsqr", lsqr<double>},
      {"lsmr", lsmr<double>},
      {"block-cgls", block_cgls<double>},
      {"fista", sparse<double>}};
  return all;
}

OperatorPtr<double> test_operator(const GridPtr& grid) {
  return dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<double>(m, n, geometric(n, 30)));
}

}  // namespace

TEST_CASE("Observers are told of the start, of every iteration, and of the end, by every solver") {
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    for (const auto& [name, solver] : least_squares_solvers()) {
      CAPTURE(name);
      const auto diary = std::make_shared<Diary>();
      SolveOptions options;
      options.max_iterations = 3;
      options.observers = {diary};
      options.batch = 4;
      options.damp = name == "fista" ? 0 : 0.1;
      const Solution<double> solution = solve<double>(solver, *A, nrhs, random_elements<double>(1), options);
      if (!grid->is_member()) {
        CHECK(diary->text.empty());
        continue;
      }
      CHECK(diary->text == "start " + name + ";0;1;2;3;0;1;2;3;end;");
      CHECK(diary->sizes == std::vector<Index>{m, n, nrhs, 3});
      CHECK(diary->damp == options.damp);
      CHECK(diary->verdicts == numbers_in(solution.report));
      for (Index j = 0; j < 4; ++j) {
        const auto at = static_cast<std::size_t>(j);
        CHECK(diary->residual_norms[3][at] == Approx(solution.verdict(j).residual_norm));
        CHECK(diary->x_norms[3][at] == Approx(norm_of(solution.column(j))));
      }
    }
  }
}

TEST_CASE("An observer on any one rank ends all columns on all ranks, at the start too") {
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    for (const auto& [name, solver] : least_squares_solvers()) {
      for (const Index end_at : {0, 2}) {
        for (int asking = 0; asking < grid->shape().size(); ++asking) {
          SolveOptions options;
          options.observers = {std::make_shared<Diary>(end_at, world().rank() == asking)};
          const auto solution = solve<double>(solver, *A, nrhs, random_elements<double>(1), options);
          if (!grid->is_member()) continue;
          CAPTURE(name, end_at, asking);
          for (const ColumnReport& column : solution.report.columns) {
            CHECK(column.reason == StopReason::user_stop);
            CHECK(column.iterations == end_at);
          }
        }
      }
    }
  }
}

TEST_CASE("A column ends where its residual has fallen to the ratio, whatever the others do") {
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    for (const auto& [name, solver] : least_squares_solvers()) {
      if (name == "fista") continue;
      // The data are mostly in the range of A, so that residuals fall far. Column 3 has a NaN.
      const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
      const Element<double> b = [&](Index i, Index j) {
        if (j == 3) return i == 7 ? std::nan("") : 1.0;
        double sum = 0;
        for (Index k = 0; k < n; ++k) sum += matrix.left(i, k) * counter_random<double>(5, k, j);
        return sum;
      };
      SolveOptions options;
      const auto plain = solve<double>(solver, *A, nrhs, b, options);
      options.residual_ratio = 0.02;
      const auto solution = solve<double>(solver, *A, nrhs, b, options);
      if (!grid->is_member()) continue;
      CAPTURE(name, grid->rows(), grid->cols());
      std::vector<double> first(nrhs, 0);
      std::vector<Index> crossing(nrhs, -1);
      for (const IterationRecord& record : plain.report.history) {
        for (std::size_t c = 0; c < record.columns.size(); ++c) {
          const auto j = static_cast<std::size_t>(record.columns[c]);
          if (record.iteration == 0) first[j] = record.residual_norms[c];
          if (crossing[j] < 0 && record.residual_norms[c] <= 0.02 * first[j]) crossing[j] = record.iteration;
        }
      }
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(j);
        if (j == 3) {
          CHECK(solution.verdict(j).reason == StopReason::non_finite);
          continue;
        }
        // A block of few columns may end in the very iteration that passes the ratio.
        CHECK((solution.verdict(j).reason == StopReason::user_stop ||
               (name == "block-cgls" && solution.verdict(j).reason == StopReason::converged)));
        // Products round differently once columns have left, which shows so near to n iterations.
        CHECK(std::abs(solution.verdict(j).iterations - crossing[static_cast<std::size_t>(j)]) <= 2);
        CHECK(solution.verdict(j).residual_norm <= 0.0201 * first[static_cast<std::size_t>(j)]);
      }
    }
  }
}

TEST_CASE(
    "Ready-made observers end all columns: at a ratio of the joint residual, and when one is not finite") {
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    const auto joint = [](const std::vector<double>& norms) { return norm_of(norms); };
    const auto diary = std::make_shared<Diary>();
    SolveOptions options;
    options.observers = {diary, stop_at_cost_ratio(0.9)};
    const auto solution = solve<double>(cgls, *A, nrhs, random_elements<double>(1), options);
    options.observers = {stop_on_non_finite()};
    const Element<double> with_nan = [](Index i, Index j) {
      return i == 2 && j == 4 ? std::nan("") : counter_random<double>(1, i, j);
    };
    const auto spoiled = solve<double>(cgls, *A, nrhs, with_nan, options);
    const auto healthy = solve<double>(cgls, *A, nrhs, random_elements<double>(1), options);
    if (!grid->is_member()) continue;
    // The ranks agree on the end in the next iteration, which no column takes.
    const std::size_t last = diary->residual_norms.size() - 1;
    CHECK(last > 0);
    CHECK(joint(diary->residual_norms[last]) <= 0.9 * joint(diary->residual_norms[0]));
    CHECK(joint(diary->residual_norms[last - 1]) > 0.9 * joint(diary->residual_norms[0]));
    for (const ColumnReport& column : solution.report.columns) {
      CHECK(column.reason == StopReason::user_stop);
      CHECK(column.iterations == static_cast<Index>(last));
    }
    for (Index j = 0; j < nrhs; ++j) {
      CHECK(spoiled.verdict(j).reason == (j == 4 ? StopReason::non_finite : StopReason::user_stop));
      CHECK(spoiled.verdict(j).iterations == 0);
      CHECK(healthy.verdict(j).reason == StopReason::converged);
    }
  }
}

namespace {

/// Keeps what it sees of X, column by column and as a matrix.
template <Scalar T>
class Onlooker final : public SolveObserver {
 public:
  explicit Onlooker(const DistMatrix<T>& X) : seen_(X.grid(), X.layout()) {}

  bool step(const IterationInfo& info) override {
    info.iterate.copy_to(seen_);
    const Range rows = seen_.local_row_range(), cols = seen_.local_col_range();
    std::vector<T> local(static_cast<std::size_t>(rows.size));
    for (Index j = 0; j < seen_.cols(); ++j) {
      const MatrixView<const T> column = info.iterate.column<T>(j);
      const bool here = j >= cols.begin && j < cols.begin + cols.size;
      right_ = right_ && column.cols == (here ? 1 : 0);
      if (!here) right_ = right_ && std::isnan(info.iterate.element(rows.begin, j).real());
      if (!here || rows.size == 0) continue;
      Backend& backend = *seen_.grid()->backend();
      backend.download(column.data, local.data(), rows.size * static_cast<Index>(sizeof(T)));
      std::vector<T> copied(local.size());
      backend.download(seen_.local().column(j - cols.begin), copied.data(),
                       rows.size * static_cast<Index>(sizeof(T)));
      right_ = right_ && local == copied;
      for (Index i = 0; i < rows.size; ++i)
        right_ = right_ && info.iterate.element(rows.begin + i, j) ==
                               std::complex<double>(local[static_cast<std::size_t>(i)]);
    }
    norms.push_back(column_norms(seen_));  // communicates, alike on all ranks
    reported.emplace_back(info.x_norms.begin(), info.x_norms.end());
    return false;
  }

  bool right() const { return right_; }
  std::vector<std::vector<double>> norms, reported;

 private:
  DistMatrix<T> seen_;
  bool right_ = true;
};

}  // namespace

TEST_CASE("Observers see X in its own order though columns change places, and may communicate") {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : {Algorithm::stationary_a, Algorithm::summa}) {
      const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
      const auto A = dense_operator(grid, algorithm, matrix);
      // Later columns are in the span of fewer singular vectors, and end earlier.
      const Element<double> b = [&matrix](Index i, Index j) {
        double sum = 0;
        for (Index k = 0; k < 2 * (nrhs - j); ++k) sum += matrix.left(i, k);
        return sum;
      };
      for (const auto& [name, solver] : least_squares_solvers()) {
        if (name == "block-cgls" && algorithm == Algorithm::summa) continue;
        CAPTURE(name, grid->rows(), grid->cols(), name_of(algorithm));
        DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
        B.fill(b);
        const auto onlooker = std::make_shared<Onlooker<double>>(X);
        SolveOptions options;
        options.observers = {onlooker};
        solver(*A, B, X, options);
        if (!grid->is_member()) continue;
        CHECK(onlooker->right());
        CHECK(onlooker->norms.size() >= 3);
        for (std::size_t k = 0; k < onlooker->norms.size(); ++k)
          for (std::size_t j = 0; j < onlooker->norms[k].size(); ++j) {
            // For FISTA the first norms are those of a step that is not taken yet.
            if (name == "fista" && k == 0) continue;
            CAPTURE(k, j);
            CHECK(onlooker->norms[k][j] == Approx(onlooker->reported[k][j]).epsilon(1e-6));
          }
      }
    }
  }
}

namespace {

/// Computes the norms of both tests of LSQR from X, and the ‖A‖ that makes them those that it is told.
class TestsFromDefinitions final : public SolveObserver {
 public:
  TestsFromDefinitions(OperatorPtr<double> A, const DistMatrix<double>& B, double damp, double tolerance)
      : A_(std::move(A)),
        B_(B),
        X_(B.grid(), A_->domain().layout(B.cols())),
        G_(B.grid(), X_.layout()),
        R_(B.grid(), B.layout()),
        damp_(damp),
        tolerance_(tolerance) {}

  bool step(const IterationInfo& info) override {
    info.iterate.copy_to(X_);
    copy(B_, R_);
    A_->apply(-1, X_, 1, R_);
    copy(X_, G_);
    A_->apply_adjoint(1, R_, -damp_ * damp_, G_);
    const auto b = column_norms(B_), x = column_norms(X_), r = column_norms(R_), g = column_norms(G_);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const double residual_test = info.residual_tests[j], gradient_test = info.gradient_tests[j],
                   damped = std::hypot(r[j], damp_ * x[j]);
      const bool is_solved = std::min(residual_test, gradient_test) <= tolerance_;
      if (!has_ended_[j]) {
        const double norm_A = (damped / residual_test - b[j]) / x[j];
        // Both divide what cancels; where it is small, rounding of X shows in it.
        if (!info.at_start && b[j] != 0 && !is_solved) {
          CHECK(g[j] / (norm_A * damped) == Approx(gradient_test).epsilon(1e-3));
          norms_A.push_back(norm_A);
        }
      } else {
        CHECK(residual_test == last_[j]);
      }
      has_ended_[j] = has_ended_[j] || is_solved;
      last_[j] = residual_test;
    }
    unsolved.push_back(static_cast<Index>(std::count(has_ended_.begin(), has_ended_.end(), false)));
    CHECK(unsolved.back() == info.active_columns);
    by_residual = {info.residual_tests.begin(), info.residual_tests.end()};
    by_gradient = {info.gradient_tests.begin(), info.gradient_tests.end()};
    return false;
  }

  std::vector<Index> unsolved;
  std::vector<double> norms_A, by_residual, by_gradient;

 private:
  OperatorPtr<double> A_;
  const DistMatrix<double>& B_;
  DistMatrix<double> X_, G_, R_;
  double damp_, tolerance_;
  std::array<bool, 3> has_ended_{};
  std::array<double, 3> last_{};
};

}  // namespace

TEST_CASE("Observers of LSQR and LSMR see both tests, of which one ends a column") {
  const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
  // Column 0 is in the range of A, and column 2 is zero.
  const Element<double> b = [&](Index i, Index j) {
    double sum = 0;
    for (Index k = 0; k < n; ++k) sum += matrix.left(i, k) * counter_random<double>(5, k, 0);
    return j == 0 ? sum : j == 1 ? counter_random<double>(6, i, 0) : 0;
  };
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    for (const Solver solver : {Solver::lsqr, Solver::lsmr, Solver::cgls}) {
      for (const double damp : {0.0, 0.1}) {
        CAPTURE(name_of(solver), damp, grid->rows(), grid->cols());
        SolveOptions options{.tolerance = 1e-6, .damp = damp};
        if (!grid->is_member()) continue;
        DistMatrix<double> B(grid, A->range().layout(3)), X(grid, A->domain().layout(3));
        B.fill(b);
        if (solver == Solver::cgls) {
          options.observers = {after_each_iteration([](const IterationInfo& info) {
            CHECK(info.residual_tests.empty());
            CHECK(info.gradient_tests.empty());
            return false;
          })};
          solve(solver, *A, B, X, options);
          continue;
        }
        const auto seen = std::make_shared<TestsFromDefinitions>(A, B, damp, 1e-6);
        options.observers = {seen};
        const SolveReport report = solve(solver, *A, B, X, options);
        for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);
        CHECK(seen->unsolved.front() == 2);
        CHECK(seen->unsolved.back() == 0);
        // Damping leaves a residual in column 0, too.
        CHECK((seen->by_residual[0] <= 1e-6) == (damp == 0));
        CHECK(seen->by_residual[1] > 1e-3);
        CHECK(seen->by_gradient[1] <= 1e-6);
        // A step adds at most ‖[A; D·I]‖², and n of them count.
        for (const double norm : seen->norms_A) CHECK(norm <= std::sqrt(n * (1 + damp * damp)));
      }
    }
  }
}

TEST_CASE("The model error of every column is known while it falls") {
  for (const auto& grid : compact_grids()) {
    const auto A = test_operator(grid);
    DistMatrix<double> truth(grid, A->domain().layout(nrhs)), X(grid, truth.layout()),
        B(grid, A->range().layout(nrhs));
    truth.fill(random_elements<double>(1));
    A->apply(1, truth, 0, B);
    for (const bool guess : {false, true}) {
      const auto model = std::make_shared<ModelErrors<double>>(truth);
      SolveOptions options;
      options.tolerance = 1e-12;
      options.observers = {model};
      options.initial_guess = guess;
      options.damp = guess ? 1e-9 : 0;  // with a guess it is a stacked system that is solved
      copy(truth, X);
      X *= 2;
      lsqr(*A, B, X, options);
      if (!grid->is_member()) continue;
      const auto& errors = model->errors();
      REQUIRE(errors.size() > 5);
      for (Index j = 0; j < nrhs; ++j) {
        CAPTURE(guess, j);
        CHECK(errors.front()[j] == Approx(1));
        CHECK(errors[2][j] < errors[0][j]);
        CHECK(errors.back()[j] < 1e-9);
      }
    }
  }
}

TEST_CASE("An iterate is of one element type") {
  const auto grid = compact_grids().front();
  DistMatrix<double> X(grid, replicated(3, 2));
  DistMatrix<float> Y(grid, replicated(3, 2));
  const std::vector<Index> places{0, 1};
  const Iterate iterate(X, places);
  CHECK(iterate.type() == ScalarType::f64);
  CHECK_THROWS_AS(iterate.column<float>(0), UsageError);
  CHECK_THROWS_AS(iterate.copy_to(Y), UsageError);
}

namespace {

/// The text of print_table() on rank 0, without the time. Other ranks have nothing.
template <Scalar T>
std::string table_of(SolverFunction<T> solver, const LinearOperator<T>& A, const Element<T>& b,
                     SolveOptions options, TableRows rows = {}) {
  std::ostringstream out;
  options.observers.push_back(print_table(out, rows));
  solve<T>(solver, A, 2, b, options);
  std::string text = out.str();
  const std::size_t time = text.find("Total time");
  if (time != std::string::npos) text.erase(time, text.find('\n', time) - time);
  return text;
}

Index rows_in(const std::string& table) {
  Index rows = 0;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 6 && std::isdigit(static_cast<unsigned char>(line[5])) != 0 && line[0] == ' ') ++rows;
  return rows;
}

}  // namespace

TEST_CASE("The table is the one that PyLops prints") {
  for (const auto& grid : compact_grids()) {
    // With A = I and D = 1 one iteration finds x = b/2: x₀₀ = 1.5, ‖B − X‖ = ‖B‖/2 = 2.5, and √(2.5² + 2.5²).
    const auto A = identity<double>({grid, Cut::balanced(Axis::grid_rows, 5, *grid), Axis::grid_cols});
    const Element<double> b = [](Index i, Index j) {
      return i == 0 && j == 0 ? 3.0 : i == 2 && j == 1 ? 4.0 : 0.0;
    };
    SolveOptions options;
    options.damp = 1;
    options.max_iterations = 30;
    const std::string line65(65, '-'), line55(55, '-');
    const std::string least_squares = table_of<double>(cgls, *A, b, options);
    options.damp = 0;
    const std::string definite = table_of<double>(cg, *A, b, options);
    const bool talks = grid->is_member() && grid->comm().rank() == 0;
    CHECK(least_squares == (talks ? "CGLS\n" + line65 +
                                        "\nThe Operator Op has 5 rows and 5 cols, for 2 right-hand sides\n"
                                        "damp = 1.000000e+00\ttol = 1.000000e-08\tniter = 30\n" +
                                        line65 +
                                        "\n\n    Itn          x[0]              r1norm         r2norm\n"
                                        "     1        1.5000e+00         2.5000e+00     3.5355e+00\n"
                                        "\nIterations = 1        \n" +
                                        line65 + "\n"
                                  : ""));
    CHECK(definite == (talks ? "CG\n" + line55 +
                                   "\nThe Operator Op has 5 rows and 5 cols, for 2 right-hand sides\n"
                                   "tol = 1.000000e-08\tniter = 30\n" +
                                   line55 +
                                   "\n\n    Itn           x[0]              r2norm\n"
                                   "     1         3.0000e+00         0.0000e+00\n"
                                   "\nIterations = 1        \n" +
                                   line55 + "\n"
                             : ""));
  }
}

TEST_CASE("The table has the first rows, the last before the limit, some between, and where it ended") {
  for (const auto& grid : compact_grids()) {
    const auto A = dense_operator(grid, Algorithm::summa, KnownSpectrum<double>(60, 50, geometric(50, 1e6)));
    SolveOptions options;
    options.tolerance = 0;
    options.max_iterations = 47;
    const std::string table = table_of<double>(cgls, *A, random_elements<double>(1), options, {3, 2, 10});
    options.observers = {after_each_iteration([](const IterationInfo& info) { return info.iteration == 7; })};
    const std::string stopped = table_of<double>(cgls, *A, random_elements<double>(1), options, {3, 2, 10});
    if (!grid->is_member() || grid->comm().rank() != 0) continue;
    CHECK(rows_in(table) == 9);    // 1 2 3, 10 20 30 40, 46 47
    CHECK(rows_in(stopped) == 4);  // 1 2 3, 7
  }
}
