// SPDX-License-Identifier: BSD-3-Clause
// One rank calls something with other arguments than the others: all ranks throw the same, before data move.
#include "support/disagreements.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "solve/run/every_solver.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// Calls check(grid, odd rank, whether this is it) on all grids of several ranks, for the first and the last
/// of them.
template <class Check>
void for_each_odd_rank(const Check& check) {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || grid->comm().size() == 1) continue;
    for (const int odd : {0, grid->comm().size() - 1}) {
      INFO(describe(*grid) << ", rank " << odd << " is the odd one");
      check(grid, odd, grid->comm().rank() == odd);
    }
  }
}

/// Checks a call whose options differ on one rank, in this value, and that it goes well afterwards.
void check_option(const char* name, const std::string& usual, const std::string& other,
                  const std::function<void(Problem&, bool)>& call) {
  INFO("what differs: " << name);
  for_each_odd_rank([&](const GridPtr& grid, int odd, bool am_odd) {
    Problem problem(grid);
    check_disagreement(grid->comm(), {difference(name, usual, other, odd, grid->comm().size())},
                       [&] { call(problem, am_odd); });
    CHECK(ending_of([&] { call(problem, false); }).text.empty());
  });
}

SolveOptions options_with(const std::function<void(SolveOptions&)>& change) {
  SolveOptions options = at_most(2);
  change(options);
  return options;
}

}  // namespace

TEST_CASE("Ranks that apply an operator with different operands all throw") {
  for_each_odd_rank([](const GridPtr& grid, int odd, bool am_odd) {
    const int ranks = grid->comm().size();
    const auto operands = [&](Index rows, Index columns, double alpha, bool adjoint) {
      const OperatorPtr<double> A =
          dense_operator<double>(grid, Algorithm::stationary_a, rows, 11, random_elements<double>(1));
      DistMatrix<double> X(grid, A->domain().layout(columns)), Y(grid, A->range().layout(columns));
      X.set_zero();
      Y.set_zero();
      if (adjoint) return A->apply_adjoint(alpha, Y, 0, X);
      A->apply(alpha, X, 0, Y);
    };
    check_disagreement(grid->comm(), {difference("the operator", "23 x 11", "24 x 11", odd, ranks)},
                       [&] { operands(am_odd ? 24 : 23, 3, 1, false); });
    check_disagreement(grid->comm(), {"the model: ", "11 x 3 ", "11 x 4 "},
                       [&] { operands(23, am_odd ? 4 : 3, 1, false); });
    check_disagreement(grid->comm(), {"the model: ", "11 x 3 ", "11 x 0 "},
                       [&] { operands(23, am_odd ? 0 : 3, 1, false); });
    check_disagreement(grid->comm(), {difference("alpha", "1", "2", odd, ranks)},
                       [&] { operands(23, 3, am_odd ? 2 : 1, false); });
    check_disagreement(grid->comm(), {difference("operation", "apply", "apply_adjoint", odd, ranks)},
                       [&] { operands(23, 3, 1, am_odd); });
    operands(23, 3, 1, false);
  });
}

TEST_CASE("An operand that does not fit on one rank is an error of all ranks") {
  for_each_odd_rank([](const GridPtr& grid, int odd, bool am_odd) {
    const Problem problem(grid);
    DistMatrix<double> wrong(grid, problem.A->range().layout(2)), Y(grid, problem.A->range().layout(3));
    check_disagreement(grid->comm(), {"the model: ", "Rank " + std::to_string(odd) + " finds: "}, [&] {
      if (am_odd) return problem.M->apply(1, wrong, 0, Y);
      problem.M->apply(1, problem.X, 0, Y);
    });
    problem.M->apply(1, problem.X, 0, Y);
  });
}

TEST_CASE(
    "A solution, or variances, in the memory of the right-hand sides are refused by all ranks, and nothing "
    "is lost") {
  using Call = std::function<void(Problem&)>;
  std::vector<std::pair<std::string, Call>> calls;
  for (const auto* list : {&solver_calls(), &inversion_calls()})
    for (const auto& [name, call] : *list)
      calls.emplace_back(name, [call = call](Problem& p) { call(p, at_most(2)); });
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const int ranks = grid->comm().size();
    for (const int odd : {0, ranks - 1}) {
      // B and R are the right-hand sides of one solver or another. On the odd rank the result begins where
      // they do.
      const bool am_odd = grid->comm().rank() == odd;
      Backend& backend = *grid->backend();
      std::vector<double> zeros(1000);
      const auto bytes = static_cast<Index>(zeros.size() * sizeof(double));
      Buffer<double> memory;
      memory.reserve(grid->backend(), static_cast<Index>(zeros.size()));
      backend.upload(zeros.data(), memory.data(), bytes);
      const auto contents = [&] {
        std::vector<double> numbers(zeros.size());
        backend.download(memory.data(), numbers.data(), bytes);
        return numbers;
      };
      Problem problem(grid);
      const auto moved = [&](DistMatrix<double>& X) {
        const MatrixView<double> local = X.local();
        X = DistMatrix<double>(grid, X.layout(),
                               MatrixView<double>(memory.data(), local.rows, local.cols, local.rows));
      };
      const auto refused = [&](const std::string& name, const char* what, const Call& call) {
        INFO(name << " on " << describe(*grid) << ", rank " << odd << " is the odd one");
        problem.B.fill(random_elements<double>(3));
        problem.R.fill(random_elements<double>(4));
        const std::vector<double> before = contents();
        check_disagreement(grid->comm(), {"would overwrite what it reads", what}, [&] { call(problem); });
        CHECK(contents() == before);
      };
      if (am_odd) {
        for (DistMatrix<double>* matrix : {&problem.B, &problem.R, &problem.variances}) moved(*matrix);
      }
      refused("lsqr", "its right-hand sides and its variances",
              [](Problem& p) { lsqr(*p.A, p.B, p.X, p.variances, at_most(2)); });
      if (am_odd) moved(problem.X);
      for (const auto& [name, call] : calls) refused(name, "its right-hand sides and its solutions", call);
    }
  }
}

TEST_CASE("Ranks that begin different solvers, or in different precision, all throw") {
  for_each_odd_rank([](const GridPtr& grid, int odd, bool am_odd) {
    const int ranks = grid->comm().size();
    Problem problem(grid);
    check_disagreement(grid->comm(), {difference("the solver", "cgls", "lsqr", odd, ranks)}, [&] {
      am_odd ? lsqr(*problem.A, problem.B, problem.X, at_most(2))
             : cgls(*problem.A, problem.B, problem.X, at_most(2));
    });
    check_disagreement(grid->comm(), {difference("operation", "a solver", "estimate_norm", odd, ranks)}, [&] {
      if (am_odd) return void(estimate_norm(*problem.A));
      cgls(*problem.A, problem.B, problem.X, at_most(2));
    });
    const OperatorPtr<float> single =
        dense_operator<float>(grid, Algorithm::stationary_a, 23, 11, random_elements<float>(1));
    DistMatrix<float> B(grid, single->range().layout(3)), X(grid, single->domain().layout(3));
    B.fill(random_elements<float>(1));
    check_disagreement(grid->comm(), {difference("the element type", "f64", "f32", odd, ranks)}, [&] {
      am_odd ? cgls(*single, B, X, at_most(2)) : cgls(*problem.A, problem.B, problem.X, at_most(2));
    });
    cgls(*problem.A, problem.B, problem.X, at_most(2));
  });
}

TEST_CASE("Ranks that solve with different options all throw") {
  using Change = std::function<void(SolveOptions&)>;
  struct Option {
    const char *name, *usual, *other;
    Change set;
  };
  const std::vector<Option> all{
      {"tolerance", "unset", "0.5", [](SolveOptions& o) { o.tolerance = 0.5; }},
      {"max_iterations", "2", "3", [](SolveOptions& o) { o.max_iterations = 3; }},
      {"damp", "0", "0.25", [](SolveOptions& o) { o.damp = 0.25; }},
      {"damp", "0", "1, 0, 0.25",
       [](SolveOptions& o) {
         o.damp = {1, 0, 0.25};
       }},
      {"tolerance", "unset", "1, 0, 0.5",
       [](SolveOptions& o) {
         o.tolerance = {1, 0, 0.5};
       }},
      {"initial_guess", "off", "on", [](SolveOptions& o) { o.initial_guess = true; }},
      {"batch", "0", "1", [](SolveOptions& o) { o.batch = 1; }},
      {"residual_ratio", "0", "0.5", [](SolveOptions& o) { o.residual_ratio = 0.5; }},
      {"column_stable", "off", "on", [](SolveOptions& o) { o.column_stable = true; }},
      {"the directory of checkpoints", "nothing", "elsewhere",
       [](SolveOptions& o) { o.checkpoint.directory = "elsewhere"; }},
      {"max_iterations", "2", "-1", [](SolveOptions& o) { o.max_iterations = -1; }}};
  const auto check = [](const Option& option, const char* call_name, const auto& call) {
    INFO(call_name);
    check_option(option.name, option.usual, option.other, [&](Problem& problem, bool am_odd) {
      call(problem, am_odd ? options_with(option.set) : at_most(2));
    });
  };
  // All solvers name their options by one function.
  for (const Option& option : all)
    check(option, "cgls", [](Problem& p, const SolveOptions& options) { cgls(*p.A, p.B, p.X, options); });
  for (const auto* calls : {&solver_calls(), &inversion_calls()})
    for (const auto& [name, call] : *calls) check(all.front(), name, call);
}

TEST_CASE("Ranks that disagree about what only one solver has all throw") {
  check_option("lambda", "0.5", "0.25", [](Problem& p, bool am_odd) {
    SolveOptions options = at_most(2);
    options.lambda = am_odd ? 0.25 : 0.5;
    ista(*p.A, p.B, p.X, options);
  });
  check_option("step", "unset", "0.001", [](Problem& p, bool am_odd) {
    SolveOptions options = at_most(2);
    if (am_odd) options.step = 0.001;
    fista(*p.A, p.B, p.X, options);
  });
  check_option("a regulariser", "epsilon 1", "epsilon 2", [](Problem& p, bool am_odd) {
    RegularizedTerms<double> terms;
    terms.regularizers.push_back({p.S, 1.0, nullptr});
    terms.regularizers.push_back({p.S, am_odd ? 2.0 : 1.0, nullptr});
    regularized_inversion(p.M, p.B, p.X, terms, at_most(2));
  });
  check_option("the solver", "lsqr", "cgls", [](Problem& p, bool am_odd) {
    preconditioned_inversion<double>(p.M, p.B, p.X,
                                     {.P = p.S, .solver = am_odd ? Solver::cgls : Solver::lsqr}, at_most(2));
  });
  check_option("the steps", "5", "6", [](Problem& p, bool am_odd) { estimate_norm(*p.A, am_odd ? 6 : 5); });
  check_option("the seed", "1", "2",
               [](Problem& p, bool am_odd) { power_iteration(*p.normal_A, 2, 1e-3, am_odd ? 2 : 1); });
  check_option("the columns", "2", "3", [](Problem& p, bool am_odd) { dot_test(*p.A, am_odd ? 3 : 2); });
}

TEST_CASE("Ranks that gather or scatter with different roots, or redistribute differently, all throw") {
  for_each_odd_rank([](const GridPtr& grid, int odd, bool am_odd) {
    const int ranks = grid->comm().size();
    const DistMatrix<double> X = filled(grid, row_blocks(*grid, 7, 3), random_elements<double>(1));
    const std::string differing = difference("the root", "0", "1", odd, ranks);
    check_disagreement(grid->comm(), {differing}, [&] { gather(X, am_odd ? 1 : 0); });
    DistMatrix<double> Y(grid, row_blocks(*grid, 7, 3));
    const std::vector<double> whole(21, 1.0);
    check_disagreement(grid->comm(), {differing}, [&] { scatter(whole, am_odd ? 1 : 0, Y); });
    DistMatrix<double> columns(grid, column_blocks(*grid, 7, 3)), copies(grid, replicated(7, 3));
    check_disagreement(grid->comm(), {"what it becomes: "},
                       [&] { redistribute(1.0, X, 0.0, am_odd ? columns : copies); });
    columns.set_zero();
    check_disagreement(grid->comm(), {difference("alpha", "1", "2", odd, ranks)},
                       [&] { redistribute(am_odd ? 2.0 : 1.0, X, 0.0, columns); });
    check_disagreement(grid->comm(), {difference("beta", "0", "1", odd, ranks)},
                       [&] { redistribute(1.0, X, am_odd ? 1.0 : 0.0, columns); });
    redistribute(1.0, X, 0.0, columns);
    CHECK(gather(columns, 0) == gather(X, 0));
  });
}
