// SPDX-License-Identifier: BSD-3-Clause
// A caller's own operator or observer throws on one rank, in the middle of a solve.
#include <filesystem>
#include <stdexcept>

#include "gridlops/ops/local_operator.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "solve/run/every_solver.hpp"
#include "support/agreed_failures.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Something of the caller's fails on this rank at its n-th call; with 0, never.
struct Fault {
  int rank = 0;
  Index call = 0;
};

void count_towards(Fault& fault, const ProcessGrid& grid) {
  if (fault.call > 0 && --fault.call == 0 && grid.comm().rank() == fault.rank)
    throw InputError("the filter has no coefficients");
}

/// A caller's operator, 2·I, which sends nothing.
class Filter final : public LinearOperator<double> {
 public:
  explicit Filter(const Space& space) : LinearOperator<double>(space, space) {}

  mutable Fault forward, backward;

 private:
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    count_towards(forward, *X.grid());
    twice(alpha, X, beta, Y);
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    count_towards(backward, *X.grid());
    twice(alpha, Y, beta, X);
  }
  static void twice(double alpha, const ConstDistMatrix<double>& in, double beta, DistMatrix<double>& out) {
    out.grid()->backend()->kernels<double>().add(2 * alpha, in.local(), beta, out.local());
  }
};

/// The filter behind a matrix's products, which all ranks take part in.
struct FilteredProblem : Problem {
  explicit FilteredProblem(const GridPtr& grid, Algorithm algorithm = Algorithm::stationary_a)
      : Problem(grid, algorithm, [](const Space& space) { return std::make_shared<Filter>(space); }) {}

  const Filter& filter() const { return dynamic_cast<const Filter&>(*S); }
};

/// Runs the action with the filter failing at its first and its third call, on the first and the last rank,
/// in either direction, and then without a failure.
void check_filter(const GridPtr& grid, const std::string& what, const std::function<void(Problem&)>& action,
                  Algorithm algorithm = Algorithm::stationary_a) {
  if (!grid->is_member()) return;
  const int last = grid->comm().size() - 1;
  for (const int rank : {0, last})
    for (const Index call : {1, 3})
      for (const bool adjoint : {false, true}) {
        INFO(what << " " << describe(*grid) << ", rank " << rank << ", call " << call
                  << (adjoint ? ", adjoint" : ", forward"));
        FilteredProblem problem(grid, algorithm), sound(grid, algorithm);
        Fault& fault = adjoint ? problem.filter().backward : problem.filter().forward;
        fault = {rank, call};
        const Ending mine = ending_of([&] { action(problem); });
        const bool came_to_it = fault.call == 0;
        fault = {};
        if (came_to_it) {
          check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
            if (mine.type != nullptr) std::rethrow_exception(mine.exception);
          });
        } else {
          CHECK(mine.text.empty());
        }
        problem.set_guess();
        action(problem);
        action(sound);
        CHECK(on_host(problem.X) == on_host(sound.X));
      }
}

}  // namespace

TEST_CASE("What an operator throws on one rank within a solver all ranks throw") {
  SolveOptions correction = at_most(5);
  correction.damp = 0.5;
  correction.initial_guess = true;
  for (const GridPtr& grid : all_grids()) {
    for (const auto& call : solver_calls())
      for (const SolveOptions& options : {at_most(5), correction})
        check_filter(grid, call.first, [&](Problem& problem) { call.second(problem, options); });
    for (const auto& call : inversion_calls())
      check_filter(grid, call.first, [&](Problem& problem) { call.second(problem, at_most(5)); });
  }
}

TEST_CASE("All ranks throw what an operator throws within a solver also where right-hand sides are cut") {
  for (const GridPtr& grid : all_grids())
    check_filter(
        grid, "cgls by summa", [](Problem& p) { cgls(*p.A, p.B, p.X, at_most(5)); }, Algorithm::summa);
}

TEST_CASE("All ranks throw what an operator throws within a norm estimate or a dot test") {
  for (const GridPtr& grid : all_grids())
    for (const auto& [name, call] : estimate_calls()) check_filter(grid, name, call);
}

TEST_CASE("What an operator that is applied alone throws on one rank all ranks throw") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int last = grid->comm().size() - 1;
    FilteredProblem problem(grid);
    DistMatrix<double> Y(grid, problem.A->range().layout(3));
    for (int call = 0; call < 3; ++call) {  // the first of them, and later ones
      problem.filter().forward = {last, 1};
      check_agreed<InputError>(*grid, last, "the filter has no coefficients",
                               [&] { problem.A->apply(1, problem.X, 0, Y); });
      problem.filter().backward = {0, 1};
      check_agreed<InputError>(*grid, 0, "the filter has no coefficients",
                               [&] { problem.A->apply_adjoint(1, problem.B, 0, problem.X); });
      problem.A->apply(1, problem.X, 0, Y);
    }
  }
}

TEST_CASE("What a function of a local operator throws on one rank all ranks throw") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int last = grid->comm().size() - 1;
    // Rows that are cut become copies, so that the ranks sum what their functions make.
    const Space cut{grid, Cut::balanced(Axis::all, 12, *grid), Axis::uncut}, copies{grid, Cut::uncut(5)};
    Fault fault;
    const auto product = [&](MatrixView<const double>, MatrixView<double> out) {
      grid->backend()->kernels<double>().fill(0, out);
      count_towards(fault, *grid);
    };
    const OperatorPtr<double> A = local_operator<double>(copies, cut, product, product);
    DistMatrix<double> X(grid, cut.layout(2)), Y(grid, copies.layout(2));
    X.set_zero();
    for (const int rank : {0, last})
      for (const bool adjoint : {false, true}) {
        fault = {rank, 2};
        A->apply(1, X, 0, Y);
        check_agreed<InputError>(*grid, rank, "the filter has no coefficients",
                                 [&] { adjoint ? A->apply_adjoint(1, Y, 0, X) : A->apply(1, X, 0, Y); });
        fault = {};
        A->apply(1, X, 0, Y);
      }
  }
}

TEST_CASE("An operator of the library that is applied again sends nothing besides its data") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    Problem problem(grid);
    DistMatrix<double> Y(grid, problem.M->range().layout(3));
    problem.M->apply(1, problem.X, 0, Y);
    const Index agreements = grid->comm().traffic().agreements;
    problem.M->apply(1, problem.X, 0, Y);
    CHECK(grid->comm().traffic().agreements == agreements);
  }
}

namespace {

/// A caller's proximal operator, that of σ‖x‖₁ for σ = 0.1.
class Shrinkage final : public ProximalOperator<double> {
 public:
  Shrinkage(const ProcessGrid& grid, Fault prox, Fault sum) : grid_(grid), prox_(prox), sum_(sum) {}
  std::string describe() const override { return "a shrinkage"; }
  void prox(ColumnOperand tau, DistMatrix<double>& X) const override {
    count_towards(prox_, grid_);
    threshold(Threshold::soft, 0.1 * (tau * ColumnScalars(X.cols(), 1)), X);
  }
  std::vector<ColumnSum<double>> sums(const ConstDistMatrix<double>& X) const override {
    count_towards(sum_, grid_);
    return {penalty(Threshold::soft, X)};
  }
  double value_of(std::span<const double> sums) const override { return 0.1 * sums[0]; }

 private:
  const ProcessGrid& grid_;
  mutable Fault prox_, sum_;
};

}  // namespace

TEST_CASE("What a proximal operator throws on one rank all ranks throw") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    for (const int rank : {0, grid->comm().size() - 1})
      for (const Index call : {1, 3})
        for (const bool in_sum : {false, true}) {
          Problem problem(grid);
          const Fault fault{rank, call};
          const auto make = [&] {
            return std::make_shared<Shrinkage>(*grid, in_sum ? Fault{} : fault, in_sum ? fault : Fault{});
          };
          SolveOptions options = at_most(4);
          options.tolerance = 0;
          options.lambda = 0.01;
          INFO(describe(*grid) << ", rank " << rank << ", call " << call
                               << (in_sum ? " of sum" : " of prox"));
          check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
            proximal_gradient<double>(*problem.A, make(), problem.B, problem.X, options);
          });
          if (in_sum && call > 1) continue;  // admm() asks for no value
          if (!in_sum) {
            AdmmOptions admm_options;
            admm_options.common = options;
            admm_options.common.lambda = 0;
            admm_options.inner_iterations = 3;
            check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
              admm<double>(problem.M, problem.S, make(), problem.B, problem.X, admm_options);
            });
            PrimalDualOptions steps;
            steps.common = admm_options.common;
            check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
              primal_dual<double>(problem.M, make(), quadratic<double>(0), problem.B, problem.X, steps);
            });
            check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
              primal_dual<double>(problem.M, quadratic<double>(1), make(), problem.B, problem.X, steps);
            });
          }
          if (call > 1) continue;
          check_agreed<InputError>(*grid, rank, "the filter has no coefficients", [&] {
            if (in_sum) {
              value(*make(), problem.X);
            } else {
              prox_of_conjugate(*make(), 1, problem.X, problem.R);
            }
          });
        }
  }
}

TEST_CASE("What asks for checkpoints may throw on one rank, and all ranks throw it") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int last = grid->comm().size() - 1;
    Problem problem(grid);
    Fault fault{last, 2};
    SolveOptions options = at_most(4);
    options.tolerance = 0;
    options.checkpoint.directory = "checkpoint-of-faults-together";
    options.checkpoint.requested = [&] {
      count_towards(fault, *grid);
      return false;
    };
    check_agreed<InputError>(*grid, last, "the filter has no coefficients",
                             [&] { cgls(*problem.A, problem.B, problem.X, options); });
  }
  world().barrier();
  if (world().rank() == 0) std::filesystem::remove_all("checkpoint-of-faults-together");
}

namespace {

/// A caller's operator, M, with no algebra between itself and the products of the matrix.
class Sensor final : public LinearOperator<double> {
 public:
  Sensor(OperatorPtr<double> M, Fault forward)
      : LinearOperator<double>(M->range(), M->domain()), M_(std::move(M)), forward_(forward) {}

 private:
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    M_->apply(alpha, X, beta, Y);
    count_towards(forward_, *X.grid());
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    M_->apply_adjoint(alpha, Y, beta, X);
  }

  OperatorPtr<double> M_;
  mutable Fault forward_;
};

}  // namespace

TEST_CASE("A normal product of three goes through all of them on a rank where the first throws") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int last = grid->comm().size() - 1;
    Problem problem(grid);
    const Sensor A(problem.M, {last, 2});
    SolveOptions options = at_most(5);
    options.one_pass = true;
    check_agreed<InputError>(*grid, last, "the filter has no coefficients",
                             [&] { cgls(A, problem.B, problem.X, options); });
  }
}

namespace {

class Watcher final : public SolveObserver {
 public:
  Watcher(const ProcessGrid& grid, Fault start, Fault step, Fault end)
      : grid_(grid), start_(start), step_(step), end_(end) {}
  void start(const SolveStart&) override { count_towards(start_, grid_); }
  bool step(const IterationInfo&) override {
    count_towards(step_, grid_);
    return false;
  }
  void end(const SolveReport&) override { count_towards(end_, grid_); }

 private:
  const ProcessGrid& grid_;
  Fault start_, step_, end_;
};

}  // namespace

TEST_CASE("What an observer, or a function that serves as one, throws on one rank all ranks throw") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int last = grid->comm().size() - 1;
    const auto check_call = [&](const char* name, const auto& solve) {
      const auto check = [&](const SolveOptions& options) {
        Problem problem(grid);
        check_agreed<InputError>(*grid, last, "the filter has no coefficients",
                                 [&] { solve(problem, options); });
      };
      for (Index call = 1; call <= iterations_of(name, 3); ++call) {  // the third iteration is the last
        CAPTURE(name, describe(*grid), call);
        Fault fault{last, call};
        SolveOptions options = at_most(3);
        options.tolerance = 0;
        options.observers = {after_each_iteration([&fault, &grid](const IterationInfo&) {
          count_towards(fault, *grid);
          return false;
        })};
        check(options);
        options.observers.clear();
        options.observers = {std::make_shared<Watcher>(*grid, Fault{}, Fault{last, call}, Fault{})};
        check(options);
      }
      SolveOptions options = at_most(3);
      options.observers = {std::make_shared<Watcher>(*grid, Fault{last, 1}, Fault{}, Fault{})};
      check(options);
      options.observers = {std::make_shared<Watcher>(*grid, Fault{}, Fault{}, Fault{last, 1})};
      check(options);
    };
    for (const auto& [name, solve] : solver_calls()) check_call(name, solve);
    for (const auto& [name, solve] : inversion_calls()) check_call(name, solve);
  }
}
