// SPDX-License-Identifier: BSD-3-Clause
// Bits are flipped in x, in the vectors of recurrences and in products, and the guard notices.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "io/npy_files.hpp"
#include "support/grids.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 60, n = 30, nrhs = 5, every = 4, first_iteration_hit = 6;
constexpr double condition = 10, tolerance = 1e-8;

// Of a double.
constexpr int sign = 63, top_of_exponent = 62, middle_of_exponent = 57, end_of_exponent = 52,
              top_of_mantissa = 51;

void flip_bit(double& value, int bit) {
  value = std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) ^ (std::uint64_t{1} << bit));
}

bool holds(Range range, Index i) { return i >= range.begin && i < range.end(); }

enum class Where { nowhere, x, forward_operand, forward_result, adjoint_operand, adjoint_result };

struct Fault {
  Where where = Where::nowhere;
  Index row = 0, column = 0;
  int bit = 0;
  Index after = first_iteration_hit - 1;  ///< the iteration after which it strikes, at the next chance
  bool again = false;                     ///< and each time from then on
};

/// An operator that changes bits in what it is given, or in what it computes.
class FaultyOperator final : public LinearOperator<double> {
 public:
  FaultyOperator(OperatorPtr<double> A, const Fault& fault)
      : LinearOperator<double>(A->range(), A->domain()), A_(std::move(A)), fault_(fault) {}

  void arm() const { is_armed_ = true; }

 private:
  void strike(Where here, const ConstDistMatrix<double>& X) const {
    if (!is_armed_ || here != fault_.where) return;
    is_armed_ = fault_.again;
    const Range rows = X.local_row_range(), columns = X.local_col_range();
    if (!X.owned() || !holds(rows, fault_.row) || !holds(columns, fault_.column)) return;
    // A fault does not ask whether memory may be written.
    flip_bit(const_cast<double&>(X.local()(fault_.row - rows.begin, fault_.column - columns.begin)),
             fault_.bit);
  }
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    strike(Where::forward_operand, X);
    A_->apply(alpha, X, beta, Y);
    strike(Where::forward_result, Y);
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    strike(Where::adjoint_operand, Y);
    A_->apply_adjoint(alpha, Y, beta, X);
    strike(Where::adjoint_result, X);
  }

  OperatorPtr<double> A_;
  const Fault fault_;
  mutable bool is_armed_ = false;
};

SolveReport sparse(bool momentum, const LinearOperator<double>& A, const ConstDistMatrix<double>& B,
                   DistMatrix<double>& X, const SolveOptions& options) {
  SolveOptions own = options;
  own.lambda = 0.05;
  return momentum ? fista(A, B, X, own) : ista(A, B, X, own);
}

struct Method {
  const char* name;
  SolverFunction<double> solver;
  bool is_square = false;
};

const std::vector<Method>& methods() {
  static const std::vector<Method> all{
      {"cgls", cgls<double>},
      {"one-pass-cgls", one_pass_cgls<double>},
      {"cg", cg<double>, true},
      {"pcg",
       [](const LinearOperator<double>& A, const ConstDistMatrix<double>& B, DistMatrix<double>& X,
          const SolveOptions& options) {
         return cg(A, *scale(2.0, identity<double>(A.domain())), B, X, options);
       },
       true},
      {"block-cgls", block_cgls<double>},
      {"ista", [](const LinearOperator<double>& A, const ConstDistMatrix<double>& B, DistMatrix<double>& X,
                  const SolveOptions& options) { return sparse(false, A, B, X, options); }},
      {"fista", [](const LinearOperator<double>& A, const ConstDistMatrix<double>& B, DistMatrix<double>& X,
                   const SolveOptions& options) { return sparse(true, A, B, X, options); }},
      {"lsqr", lsqr<double>},
      {"lsmr", lsmr<double>},
  };
  return all;
}

SolveOptions guarded() {
  SolveOptions options;
  options.max_iterations = 400;
  options.tolerance = tolerance;
  options.guard = every;
  options.column_stable = true;
  return options;
}

OperatorPtr<double> sound_operator(const GridPtr& grid, const Method& method,
                                   Algorithm algorithm = Algorithm::stationary_a) {
  if (method.is_square)
    return square_operator(grid, algorithm, KnownSpectrum<double>::hermitian(geometric(n, condition)),
                           {.column_stable = true});
  return dense_operator(grid, algorithm, KnownSpectrum<double>(m, n, geometric(n, condition)),
                        {.column_stable = true});
}

Solution<double> solve_with_fault(const Method& method, const OperatorPtr<double>& sound, const Fault& fault,
                                  SolveOptions options = guarded(), Index columns = nrhs) {
  const FaultyOperator A(sound, fault);
  options.observers.push_back(after_each_iteration([&](const IterationInfo& info) {
    if (info.iteration != fault.after) return false;
    A.arm();
    if (fault.where != Where::x) return false;
    const MatrixView<const double> x = info.iterate.column<double>(fault.column);
    const Range rows = A.domain().layout(columns).row_range(*A.domain().grid, A.domain().grid->my_row(),
                                                            A.domain().grid->my_col());
    if (x.cols > 0 && holds(rows, fault.row))
      flip_bit(const_cast<double&>(x(fault.row - rows.begin, 0)), fault.bit);
    return false;
  }));
  return solve<double>(method.solver, A, columns, random_elements<double>(4), options);
}

const Method& method(const char* name) {
  for (const Method& candidate : methods())
    if (std::string_view(candidate.name) == name) return candidate;
  throw std::logic_error(std::string("no method ") + name);
}

/// Whether something that is no solution is said to be one.
bool is_wrong_success(const Solution<double>& found, Index j, const Solution<double>& sound) {
  const StopReason reason = found.verdict(j).reason;
  const bool success = reason == StopReason::converged || reason == StopReason::stagnated;
  return success && !(relative_difference(found.column(j), sound.column(j)) <= 10 * condition * tolerance);
}

void check_noticed(const Solution<double>& hit, const Fault& fault) {
  REQUIRE(!hit.report.alarms.empty());
  const GuardAlarm& alarm = hit.report.alarms[0];
  CHECK(alarm.iteration >= first_iteration_hit);
  CHECK(alarm.iteration <= 2 * every);
  CHECK((alarm.found > alarm.limit || alarm.kind == GuardAlarm::Kind::non_finite));
  CHECK(alarm.column == fault.column);
  const std::vector<double> x = hit.column(fault.column);
  CHECK(std::all_of(x.begin(), x.end(), [](double element) { return std::isfinite(element); }));
  CHECK(hit.verdict(fault.column).reason == StopReason::converged);
}

}  // namespace

TEST_CASE("A flipped bit in x, a vector or a product is noticed in its column, and others go on to the bit") {
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"cgls", "one-pass-cgls", "cg", "pcg", "lsqr", "lsmr"}) {
      const Method& chosen = method(name);
      const OperatorPtr<double> A = sound_operator(grid, chosen);
      const Solution<double> sound = solve_with_fault(chosen, A, {});
      if (grid->is_member()) CHECK(sound.report.alarms.empty());
      for (const Where where :
           {Where::x, Where::forward_operand, Where::forward_result, Where::adjoint_operand}) {
        if (chosen.is_square && where == Where::adjoint_operand) continue;
        for (const int bit : {sign, top_of_exponent, middle_of_exponent, end_of_exponent, top_of_mantissa}) {
          const Fault fault{where, 7, 2, bit};
          const Solution<double> hit = solve_with_fault(chosen, A, fault);
          if (!grid->is_member()) continue;
          CAPTURE(name, describe(*grid), static_cast<int>(where), bit);
          check_noticed(hit, fault);
          CHECK_FALSE(is_wrong_success(hit, fault.column, sound));
          for (Index j = 0; j < nrhs; ++j) {
            if (j == fault.column) continue;
            CHECK(hit.column(j) == sound.column(j));
            CHECK(hit.verdict(j).iterations == sound.verdict(j).iterations);
            CHECK(hit.verdict(j).residual_norm == sound.verdict(j).residual_norm);
          }
        }
      }
    }
  }
}

TEST_CASE("A flipped bit that changes 2^-27 of an element is noticed where the recurrence has the residual") {
  constexpr int within_mantissa = 25;
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"cgls", "one-pass-cgls", "cg", "pcg"}) {
      const Method& chosen = method(name);
      const OperatorPtr<double> A = sound_operator(grid, chosen);
      for (const Where where : {Where::x, Where::forward_result}) {
        const Fault fault{where, 7, 2, within_mantissa};
        const Solution<double> hit = solve_with_fault(chosen, A, fault);
        if (!grid->is_member()) continue;
        CAPTURE(name, describe(*grid), static_cast<int>(where));
        check_noticed(hit, fault);
      }
    }
  }
}

TEST_CASE("Columns that share a Krylov space begin anew together") {
  for (const GridPtr& grid : compact_grids()) {
    const Method& chosen = method("block-cgls");
    const OperatorPtr<double> A = sound_operator(grid, chosen);
    SolveOptions options = guarded();
    options.guard = 1;
    const Solution<double> sound = solve_with_fault(chosen, A, {}, options);
    for (const Where where : {Where::x, Where::forward_operand, Where::forward_result}) {
      for (const int bit : {sign, top_of_exponent, middle_of_exponent, end_of_exponent}) {
        const Solution<double> hit = solve_with_fault(chosen, A, {where, 7, 2, bit, 2}, options);
        if (!grid->is_member()) continue;
        CAPTURE(describe(*grid), static_cast<int>(where), bit);
        CHECK_FALSE(hit.report.alarms.empty());
        for (Index j = 0; j < nrhs; ++j) {
          CHECK(hit.verdict(j).reason == StopReason::converged);
          CHECK_FALSE(is_wrong_success(hit, j, sound));
        }
      }
    }
  }
}

TEST_CASE("Whatever bit flips, nothing wrong is called a solution") {
  const GridPtr grid = compact_grids().back();
  for (const char* name : {"cgls", "lsqr"}) {
    const Method& chosen = method(name);
    const OperatorPtr<double> A = sound_operator(grid, chosen);
    const Solution<double> sound = solve_with_fault(chosen, A, {});
    for (const Where where :
         {Where::x, Where::forward_operand, Where::forward_result, Where::adjoint_result}) {
      for (int bit = 0; bit < 64; bit += bit < 48 ? 16 : 1) {
        const Solution<double> hit = solve_with_fault(chosen, A, {where, 11, 1, bit});
        if (!grid->is_member()) continue;
        CAPTURE(name, static_cast<int>(where), bit);
        for (Index j = 0; j < nrhs; ++j) CHECK_FALSE(is_wrong_success(hit, j, sound));
      }
    }
  }
}

TEST_CASE("ISTA and FISTA compute residuals anew, so that a flipped bit is a new place to begin from") {
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"ista", "fista"}) {
      const Method& chosen = method(name);
      const OperatorPtr<double> A = sound_operator(grid, chosen);
      SolveOptions options = guarded();
      options.tolerance = 1e-5;
      options.max_iterations = 5000;
      const Solution<double> sound = solve_with_fault(chosen, A, {}, options);
      for (const int bit : {top_of_exponent, top_of_mantissa}) {
        const Solution<double> hit = solve_with_fault(chosen, A, {Where::x, 7, 2, bit}, options);
        if (!grid->is_member()) continue;
        CAPTURE(name, bit, describe(*grid));
        CHECK(hit.report.alarms.empty() == (bit != top_of_exponent));
        CHECK(hit.verdict(2).reason == StopReason::converged);
        CHECK(relative_difference(hit.column(2), sound.column(2)) <= 1e-2);
      }
    }
  }
}

TEST_CASE("A column that fails again at once ends as corrupted, with an iterate that was checked") {
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"cgls", "one-pass-cgls"}) {
      const Method& chosen = method(name);
      const OperatorPtr<double> A = sound_operator(grid, chosen);
      Fault fault{Where::forward_result, 7, 0, sign};
      fault.again = true;
      const Solution<double> sound = solve_with_fault(chosen, A, {}, guarded(), 1),
                             hit = solve_with_fault(chosen, A, fault, guarded(), 1);
      if (!grid->is_member()) continue;
      CAPTURE(name, describe(*grid));
      CHECK(hit.verdict(0).reason == StopReason::corrupted);
      CHECK(hit.report.alarms.size() == 2);
      CHECK(relative_difference(hit.column(0), sound.column(0)) < 1);
    }
  }
}

TEST_CASE("The products of the guard are counted") {
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"cgls", "lsqr"}) {
      const Method& chosen = method(name);
      const auto columns_of = [&](Index guard) {
        const OperatorPtr<double> A = sound_operator(grid, chosen);
        SolveOptions options = guarded();
        options.guard = guard;
        const Solution<double> solution =
            solve<double>(chosen.solver, *A, nrhs, random_elements<double>(4), options);
        CHECK(solution.report.guard_products >= (guard == 0 || !grid->is_member() ? 0 : 1));
        return A->activity().forward_columns + A->activity().adjoint_columns - solution.report.guard_products;
      };
      CHECK(columns_of(every) == columns_of(0));
    }
  }
}

TEST_CASE("A restart goes on to the bit after the guard has found something") {
  for (const GridPtr& grid : compact_grids()) {
    for (const char* name : {"cgls", "cg", "block-cgls", "lsqr"}) {
      const Method& chosen = method(name);
      const OperatorPtr<double> A = sound_operator(grid, chosen);
      const ScratchFolder folder;
      SolveOptions options = guarded();
      if (chosen.name == std::string("block-cgls")) options.guard = 2;
      const Fault fault{Where::forward_result, 7, 2, sign, options.guard};
      options.checkpoint.directory = folder.file("saved");
      options.checkpoint.every_iterations = options.guard == 2 ? 4 : 10;
      const Solution<double> saving = solve_with_fault(chosen, A, fault, options);
      options.checkpoint.restart = folder.file("saved");
      const Solution<double> resumed = solve_with_fault(chosen, A, {}, options);
      if (!grid->is_member()) continue;
      CAPTURE(name, describe(*grid));
      REQUIRE_FALSE(saving.report.alarms.empty());
      CHECK(resumed.X == saving.X);
      CHECK(numbers_in(resumed.report) == numbers_in(saving.report));
      REQUIRE(resumed.report.alarms.size() == saving.report.alarms.size());
      CHECK(resumed.report.alarms[0].found == saving.report.alarms[0].found);
    }
  }
}

TEST_CASE("A guard at a negative interval is refused") {
  const GridPtr grid = compact_grids().back();
  SolveOptions options;
  options.guard = -1;
  const OperatorPtr<double> A = sound_operator(grid, method("cgls"));
  CHECK_THROWS_AS(solve<double>(cgls, *A, nrhs, random_elements<double>(4), options), UsageError);
}

namespace {

/// Half of them 1, half small: an iterate becomes much longer in one step.
std::vector<double> two_clusters(Index count, double ratio) {
  std::vector<double> values(static_cast<std::size_t>(count), 1.0);
  std::fill(values.begin() + count / 2, values.end(), 1 / ratio);
  return values;
}

/// Solves with and without a guard. The largest singular value is 1.
template <Scalar T>
void check_silence(const GridPtr& grid, const std::vector<double>& spectrum, double damp, bool guess) {
  const double of_condition = spectrum.front() / spectrum.back();
  const KnownSpectrum<T> matrix(m, n, spectrum);
  const auto hermitian = KnownSpectrum<T>::hermitian(spectrum);
  const auto A = dense_operator(grid, Algorithm::stationary_a, matrix),
             S = square_operator(grid, Algorithm::summa, hermitian);
  for (const SolverFunction<T> solver :
       {SolverFunction<T>(cgls<T>), SolverFunction<T>(one_pass_cgls<T>), SolverFunction<T>(lsqr<T>),
        SolverFunction<T>(lsmr<T>), SolverFunction<T>(block_cgls<T>), SolverFunction<T>(cg<T>)}) {
    // Beyond that the recurrence of blocks is no longer that of the problem.
    if (solver == SolverFunction<T>(block_cgls<T>) && of_condition * epsilon_of < T >> 1) continue;
    const auto& op = solver == SolverFunction<T>(cg<T>) ? S : A;
    SolveOptions options;
    options.max_iterations = 80;
    options.damp = damp;
    options.batch = 4;
    const Element<T> b = random_elements<T>(7), x0 = guess ? random_elements<T>(8) : Element<T>{};
    const Solution<T> without = solve<T>(solver, *op, nrhs, b, options, x0);
    options.guard = 1;
    const Solution<T> with = solve<T>(solver, *op, nrhs, b, options, x0);
    if (!grid->is_member()) return;
    CAPTURE(with.report.solver, of_condition, damp, guess, describe(*grid), sizeof(T));
    for (const GuardAlarm& alarm : with.report.alarms) {
      CAPTURE(static_cast<int>(alarm.kind), alarm.iteration, alarm.column, alarm.found, alarm.limit);
      CHECK(false);
    }
    CHECK(with.X == without.X);
    CHECK(numbers_in(with.report) == numbers_in(without.report));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Without a fault the guard is silent and changes no bit", "", float, double,
                   std::complex<float>, std::complex<double>) {
  for (const GridPtr& grid : compact_grids())
    for (const std::vector<double>& spectrum : {geometric(n, 3), geometric(n, 1e8), two_clusters(n, 1e5)})
      for (const bool damped_guess : {false, true})
        check_silence<TestType>(grid, spectrum, damped_guess ? 0.1 : 0, damped_guess);
}

TEST_CASE("Without a fault the guard is silent with a preconditioner of a large condition") {
  const auto matrix = KnownSpectrum<double>::hermitian(geometric(n, 10));
  for (const GridPtr& grid : compact_grids())
    for (const double of_condition : {1e8, 1e10, 1e12}) {
      const auto A = square_operator(grid, Algorithm::stationary_a, matrix);
      // Signs turn the eigenvectors, which are those of A otherwise.
      DistMatrix<double> d(grid, {A->domain().layout(1).rows, Cut::uncut(1)});
      d.fill([](Index i, Index) { return i * i % 7 < 3 ? 1.0 : -1.0; });
      const auto signs = diagonal(A->domain(), std::move(d));
      const auto clustered = KnownSpectrum<double>::hermitian(two_clusters(n, of_condition));
      const auto M =
          product(product(signs, square_operator(grid, Algorithm::stationary_a, clustered)), signs);
      DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
      B.fill(random_elements<double>(7));
      SolveOptions options;
      options.max_iterations = 300;
      options.tolerance = 1e-12;
      options.guard = 1;
      const SolveReport report = cg(*A, *M, B, X, options);
      if (!grid->is_member()) continue;
      CAPTURE(of_condition, describe(*grid));
      CHECK(report.guard_products > nrhs);
      for (const GuardAlarm& alarm : report.alarms) {
        CAPTURE(alarm.iteration, alarm.column, alarm.found, alarm.limit);
        CHECK(false);
      }
    }
}
