// SPDX-License-Identifier: BSD-3-Clause
// Solvers take the reductions, bytes and memory that they promise.
#include <algorithm>
#include <functional>

#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/inversion.hpp"
#include "gridlops/solve/proximal.hpp"
#include "gridlops/solve/refined_solver.hpp"
#include "gridlops/solve/solve_observer.hpp"
#include "gridlops/solve/sparse_solver.hpp"
#include "support/metered_backend.hpp"
#include "support/solution_checks.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index m = 45, n = 23;

/// Records one number after each iteration.
template <class Account>
std::function<bool(const IterationInfo&)> recorder(std::vector<Index>& values, Account account) {
  return [&values, account](const IterationInfo&) {
    values.push_back(account());
    return false;
  };
}

/// The number of reductions in one adjoint application of the operator.
Index own_reductions(const ProcessGrid& grid, Algorithm algorithm) {
  return algorithm == Algorithm::block && grid.cols() > 1 ? 1 : 0;
}

void check_reductions(const GridPtr& grid, Algorithm algorithm, Index nrhs, bool initial_guess, double damp) {
  const OperatorPtr<double> A = dense_operator(grid, algorithm, KnownSpectrum<double>(m, n, geometric(n, 3)));
  const auto reductions = [&grid] { return grid->comm().traffic().calls_of(CommOperation::all_reduce); };
  std::vector<Index> after_iterations;
  SolveOptions options;
  options.damp = damp;
  options.observers = {after_each_iteration(recorder(after_iterations, reductions))};
  const Element<double> guess = initial_guess ? random_elements<double>(2) : Element<double>{};
  DistMatrix<double> B(grid, A->range().layout(nrhs)), X(grid, A->domain().layout(nrhs));
  B.fill(random_elements<double>(1));
  X.fill(random_elements<double>(2));
  options.initial_guess = initial_guess;
  const Index before = grid->is_member() ? reductions() : 0;
  const Index agreements_before = grid->is_member() ? grid->comm().traffic().agreements : 0;
  const SolveReport report = cgls(*A, B, X, options);
  if (!grid->is_member()) return;
  CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), nrhs, initial_guess, damp);
  const Index of_adjoint = own_reductions(*grid, algorithm);
  const Index starts = initial_guess ? 2 : 1;
  const Index adjoints = (initial_guess ? 2 : 1) + report.iterations + 1;
  // Ranks agree on the solver's memory, on the scale of B, and at the end.
  CHECK(reductions() - before == 3 + starts + 2 * report.iterations + 1 + adjoints * of_adjoint);
  // They compare the arguments of the solver, and of the operator in either direction, which then takes
  // memory.
  CHECK(grid->comm().traffic().agreements - agreements_before == 1 + 2 * 2);
  REQUIRE(static_cast<Index>(after_iterations.size()) == report.iterations);
  for (std::size_t k = 1; k < after_iterations.size(); ++k)
    CHECK(after_iterations[k] - after_iterations[k - 1] == 2 + of_adjoint);
}

}  // namespace

TEST_CASE("An iteration takes two reductions, whatever the number of columns") {
  for (const auto& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const Index nrhs : {1, 7, 64}) check_reductions(grid, algorithm, nrhs, false, 0);
      check_reductions(grid, algorithm, 5, true, 0);
      check_reductions(grid, algorithm, 5, true, 0.1);
    }
  }
}

namespace {

/// The bytes that an all_reduce of this many doubles brings to this rank.
Index bytes_of_all_reduce(const Communicator& comm, Index count) {
  const Index own = Partition::balanced(count, comm.size()).size(comm.rank());
  return 8 * (own * (comm.size() - 1) + count - own);
}

template <Scalar T>
void check_bytes(const GridPtr& grid, SolverFunction<T> solver, Index nrhs) {
  const OperatorPtr<T> A =
      dense_operator(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(n, 30)));
  std::vector<Index> received;
  SolveOptions options;
  options.tolerance = 0;
  options.max_iterations = 6;
  options.observers = {
      after_each_iteration(recorder(received, [&grid] { return grid->comm().traffic().bytes_received; }))};
  const Solution<T> solution = solve<T>(solver, *A, nrhs, random_elements<T>(1), options);
  if (!grid->is_member()) return;
  const auto product = [&](bool adjoint) {
    return product_cost(Algorithm::stationary_a, {m, n, nrhs, scalar_type_of<T>}, grid->shape(),
                        grid->my_row(), grid->my_col(), adjoint)
        .bytes_received;
  };
  // Each reduction also says whether some rank has failed, and the first one whether to stop.
  const Index scalars =
      bytes_of_all_reduce(grid->comm(), 2 * nrhs + 2) + bytes_of_all_reduce(grid->comm(), 3 * nrhs + 1);
  CAPTURE(grid->rows(), grid->cols(), nrhs);
  REQUIRE(received.size() == 6);
  for (std::size_t k = 1; k < received.size(); ++k)
    CHECK(received[k] - received[k - 1] == product(false) + product(true) + scalars);
}

}  // namespace

TEMPLATE_TEST_CASE("An iteration with a matrix that stays moves vectors and scalars alone, to the byte", "",
                   float, std::complex<double>) {
  for (const auto& grid : compact_grids())
    for (const Index nrhs : {1, 5}) check_bytes<TestType>(grid, cgls, nrhs);
}

namespace {

template <Scalar T>
void check_memory(SolverFunction<T> solver, Solver which, const LinearOperator<T>& A, MeteredBackend& backend,
                  Index nrhs, Index batch, double damp = 0, bool initial_guess = false,
                  bool preconditioned = false, bool guarded = false, bool one_pass = false) {
  const auto& grid = A.domain().grid;
  DistMatrix<T> B(grid, A.range().layout(nrhs)), X(grid, A.domain().layout(nrhs));
  B.fill(random_elements<T>(1));
  X.set_zero();
  SolveOptions options;
  options.batch = batch;
  options.damp = damp;
  options.initial_guess = initial_guess;
  options.guard = guarded ? 2 : 0;
  options.one_pass = one_pass;
  solver(A, B, X, options);  // the operator has its memory now
  X.set_zero();              // else nothing would be left to iterate for with a guess
  release_scratch(*grid);    // a preconditioned problem uses the grid's
  const Index before = backend.bytes_in_use();
  std::vector<Index> allocations;
  options.observers = {
      after_each_iteration(recorder(allocations, [&backend] { return backend.allocations(); }))};
  backend.forget_most();
  solver(A, B, X, options);
  if (!grid->is_member()) return;
  const Index predicted =
      solver_workspace_bytes({which, A.range(), A.domain(), scalar_type_of<T>, nrhs, batch, damp > 0,
                              initial_guess, one_pass, preconditioned, guarded},
                             grid->my_row(), grid->my_col());
  CAPTURE(name_of(which), grid->rows(), grid->cols(), nrhs, batch, damp, initial_guess);
  const Index took = backend.most_bytes_in_use() - before;
  CHECK(took >= predicted);
  // The scalars are at most five doubles and one element per column, with a gap before complex sums. Arrays
  // of scratch memory begin at multiples of 256 bytes.
  const Index scalars = static_cast<Index>(40 + sizeof(T)) * nrhs + Index{sizeof(double)};
  CHECK(took <= predicted + scalars + (preconditioned ? 3 * 256 : 0));
  release_scratch(*grid);
  CHECK(backend.bytes_in_use() == before);
  if (batch == 0)
    CHECK(std::adjacent_find(allocations.begin(), allocations.end(), std::not_equal_to<>()) ==
          allocations.end());
}

SolveOptions sparse(SolveOptions options) {
  options.lambda = 0.1;
  return options;
}

template <Scalar T>
SolveReport pcg_with(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                     const SolveOptions& options) {
  return cg(A, *identity<T>(A.domain()), B, X, options);
}
template <Scalar T, Solver solver>
SolveReport scaled(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                   const SolveOptions& options) {
  const OperatorPtr<T> shared(OperatorPtr<T>(), &A), P = scale(T(2), identity<T>(A.domain()));
  return preconditioned_inversion<T>(shared, B, X, {.P = P, .solver = solver, .damps_x = true}, options);
}
template <Scalar T>
SolveReport ista_with(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                      const SolveOptions& options) {
  return ista(A, B, X, sparse(options));
}
template <Scalar T>
SolveReport fista_with(const LinearOperator<T>& A, const ConstDistMatrix<T>& B, DistMatrix<T>& X,
                       const SolveOptions& options) {
  return fista(A, B, X, sparse(options));
}

}  // namespace

TEMPLATE_TEST_CASE("A solver takes the memory that it says", "", float, std::complex<double>) {
  const auto backend = std::make_shared<MeteredBackend>();
  const KnownSpectrum<TestType> matrix(m, n, geometric(n, 3));
  for (const auto& grid : compact_grids(backend)) {
    for (const Algorithm algorithm : all_algorithms) {
      const auto A = dense_operator(grid, algorithm, matrix);
      for (const Index nrhs : {1, 13})
        for (const Index batch : {0, 1, 4})
          check_memory<TestType>(cgls, Solver::cgls, *A, *backend, nrhs, batch);
    }
    const auto hermitian = KnownSpectrum<TestType>::hermitian(geometric(n, 3));
    const auto A = dense_operator(grid, Algorithm::summa, hermitian);
    for (const Index batch : {0, 4}) {
      check_memory<TestType>(cg, Solver::cg, *A, *backend, 13, batch);
      check_memory<TestType>(pcg_with<TestType>, Solver::pcg, *A, *backend, 13, batch);
    }
    const auto tall = dense_operator(grid, Algorithm::stationary_a, matrix),
               packed = dense_operator(grid, Algorithm::stationary_a, matrix, {.storage = Storage::packed});
    for (const Index batch : {0, 4}) {
      check_memory<TestType>(cgls, Solver::cgls, *packed, *backend, 13, batch, 0, false, false, false, true);
      for (const double damp : {0.0, 0.1}) {
        for (const bool guess : {false, true}) {
          check_memory<TestType>(lsqr, Solver::lsqr, *tall, *backend, 13, batch, damp, guess);
          check_memory<TestType>(lsmr, Solver::lsmr, *tall, *backend, 13, batch, damp, guess);
          check_memory<TestType>(scaled<TestType, Solver::lsqr>, Solver::lsqr, *tall, *backend, 13, batch,
                                 damp, guess, true);
          check_memory<TestType>(scaled<TestType, Solver::cgls>, Solver::cgls, *packed, *backend, 13, batch,
                                 damp, guess, true, false, true);
        }
      }
      for (const SolverFunction<TestType> guarded :
           {SolverFunction<TestType>(cgls<TestType>), SolverFunction<TestType>(lsqr<TestType>)})
        check_memory<TestType>(
            guarded, guarded == SolverFunction<TestType>(lsqr<TestType>) ? Solver::lsqr : Solver::cgls, *tall,
            *backend, 13, batch, 0.1, true, false, true);
      check_memory<TestType>(ista_with<TestType>, Solver::ista, *tall, *backend, 13, batch);
      check_memory<TestType>(fista_with<TestType>, Solver::fista, *tall, *backend, 13, batch);
      for (const double damp : {0.0, 0.1})
        check_memory<TestType>(block_cgls, Solver::block_cgls, *tall, *backend, 13, batch, damp);
    }
  }
  CHECK(backend->bytes_in_use() == 0);
}

namespace {

/// An inversion with operators of its own, and what it says it takes.
template <Scalar T>
struct Inversion {
  std::function<SolveBytes(Index nrhs, const SolveOptions&)> bytes;
  std::function<void(const DistMatrix<T>& B, DistMatrix<T>& X, const SolveOptions&)> solve;
};

/// Inversions with operators on arrays, which keep tables and diagonals, and take scratch memory.
template <Scalar T>
class Inversions {
 public:
  explicit Inversions(Space space) : space_(std::move(space)) {}

  Inversion<T> plain() const {
    const OperatorPtr<T> A = modelling(0);
    return {
        [A](Index nrhs, const SolveOptions& options) { return solve_bytes(Solver::cgls, *A, nrhs, options); },
        [A](const auto& B, auto& X, const SolveOptions& options) { cgls(*A, B, X, options); }};
  }
  Inversion<T> normal_equations() const {
    const OperatorPtr<T> A = modelling(0);
    NormalEquationsTerms<T> terms;
    terms.weight = positive();
    terms.regularizers = {{gradient<T>(space_, {1, 1}), 2}, {modelling(1), 1}};
    terms.normal_regularizers = {{positive(), 3}};
    return {[=](Index nrhs, const SolveOptions& options) {
              return normal_equations_inversion_bytes(A, nrhs, terms, options);
            },
            [=](const auto& B, auto& X, const SolveOptions& options) {
              normal_equations_inversion(A, B, X, terms, options);
            }};
  }
  Inversion<T> stacked() const {
    const OperatorPtr<T> A = modelling(0);
    const RegularizedTerms<T> terms{
        positive(), {{modelling(1), 2}, {gradient<T>(space_, {1, 1}), 3}}, Solver::cgls};
    return {[=](Index nrhs, const SolveOptions& options) {
              return regularized_inversion_bytes(A, nrhs, terms, options);
            },
            [=](const auto& B, auto& X, const SolveOptions& options) {
              regularized_inversion(A, B, X, terms, options);
            }};
  }
  Inversion<T> by_admm() const {
    const OperatorPtr<T> A = modelling(0), L = gradient<T>(space_, {1, 1});
    const ProximalPtr<T> g = threshold_penalty<T>(Threshold::soft, 0.1);
    return {[=](Index nrhs, const SolveOptions& options) {
              return admm_bytes(A, L, g, nrhs, {.common = options});
            },
            [=](const auto& B, auto& X, const SolveOptions& options) {
              admm(A, L, g, B, X, {.common = options});
            }};
  }
  Inversion<T> by_refinement() const {
    const OperatorPtr<T> A = modelling(0), approximation = scale(T(2), modelling(0));
    return {[=](Index nrhs, const SolveOptions& options) {
              return refined_bytes(*A, *approximation, nrhs, {.common = options});
            },
            [=](const auto& B, auto& X, const SolveOptions& options) {
              solve_refined(*A, *approximation, B, X, {.common = options});
            }};
  }

 private:
  OperatorPtr<T> positive() const {
    DistMatrix<T> d(space_.grid, space_.layout(1));
    d.fill([](Index i, Index) { return T(static_cast<Real<T>>(1 + i % 3)); });
    return diagonal<T>(space_, std::move(d));
  }
  OperatorPtr<T> modelling(int dim) const {
    return product(positive(),
                   band_operator<T>(space_, dim, convolution(space_.dims.size(dim), {1, 2, 4}, 1)));
  }

  Space space_;
};

}  // namespace

TEMPLATE_TEST_CASE("An inversion takes the memory that it says, with its operators", "", float,
                   std::complex<double>) {
  using T = TestType;
  const auto backend = std::make_shared<MeteredBackend>();
  for (const auto& grid : compact_grids(backend)) {
    const Space space = array_space(grid, {9, 14}, 0);
    const Inversions<T> inversions(space);
    const auto check = [&](const char* name, Index nrhs, Index batch, const auto& make) {
      DistMatrix<T> B(grid, space.layout(nrhs)), X(grid, space.layout(nrhs));
      B.fill(random_elements<T>(1));
      X.set_zero();
      release_scratch(*grid);
      const Index before = backend->bytes_in_use();
      backend->forget_most();
      const Inversion<T> inversion = make();
      SolveOptions options;
      options.max_iterations = 2;
      options.initial_guess = true;
      options.batch = batch;
      const SolveBytes said = inversion.bytes(nrhs, options);
      inversion.solve(B, X, options);
      CAPTURE(name, grid->rows(), grid->cols(), nrhs, batch, said.operators, said.vectors, said.products);
      if (!grid->is_member()) {
        CHECK(said.total() == 0);
        return;
      }
      const Index took = backend->most_bytes_in_use() - before;
      CHECK(took >= said.total());
      CHECK(took <= said.total() + static_cast<Index>(100 + 4 * sizeof(T)) * nrhs);
      CHECK(said.products > 0);
    };
    for (const auto& [nrhs, batch] : {std::pair<Index, Index>{1, 0}, {5, 0}, {5, 2}}) {
      check("a solve", nrhs, batch, [&] { return inversions.plain(); });
      check("normal equations", nrhs, batch, [&] { return inversions.normal_equations(); });
      check("a stack", nrhs, batch, [&] { return inversions.stacked(); });
      check("ADMM", nrhs, batch, [&] { return inversions.by_admm(); });
      check("refinement", nrhs, batch, [&] { return inversions.by_refinement(); });
    }
  }
  CHECK(backend->bytes_in_use() == 0);
}

TEST_CASE("Refinement by a high plane, or by A itself, takes A's memory once") {
  using T = double;
  const auto backend = std::make_shared<MeteredBackend>();
  for (const auto& grid : compact_grids(backend)) {
    for (const bool by_plane : {true, false}) {
      const Index before = backend->bytes_in_use();
      const auto A =
          dense_operator<T>(grid, Algorithm::stationary_a, KnownSpectrum<T>(m, n, geometric(n, 30)),
                            {.storage = Storage::planes});
      const OperatorPtr<T> approximation = by_plane ? high_plane(A) : A;
      const SolveBytes said = refined_bytes(*A, *approximation, 3);
      {
        DistMatrix<T> B(grid, A->range().layout(3)), X(grid, A->domain().layout(3));
        B.fill(random_elements<T>(1));
        solve_refined(*A, *approximation, B, X, {.common = {.max_iterations = 2}});
      }
      if (!grid->is_member()) continue;
      release_scratch(*grid);
      CAPTURE(grid->rows(), grid->cols(), by_plane);
      CHECK(said.operators >= backend->bytes_in_use() - before);
      CHECK(said.operators == solve_bytes(Solver::cgls, *A, 3).operators);
    }
  }
}

TEST_CASE("From the second iteration on nothing is allocated, though columns leave") {
  for (const bool column_stable : {false, true}) {
    for (const auto& grid : compact_grids()) {
      for (const Algorithm algorithm : all_algorithms) {
        const KnownSpectrum<double> matrix(m, n, geometric(n, 30));
        MatrixMultOptions mult_options;
        mult_options.column_stable = column_stable;
        const auto A = dense_operator(grid, algorithm, matrix, mult_options);
        std::vector<Index> allocations;
        SolveOptions options;
        options.column_stable = column_stable;
        options.observers = {
            after_each_iteration(recorder(allocations, [&grid] { return grid->backend()->allocations(); }))};
        const Element<double> b = [&](Index i, Index j) {
          return j < 20 ? matrix.left(i, j) + matrix.left(i, 20 - j) : counter_random<double>(1, i, j);
        };
        solve<double>(cgls, *A, 48, b, options);
        if (!grid->is_member()) continue;
        CAPTURE(grid->rows(), grid->cols(), name_of(algorithm), column_stable);
        CHECK(allocations.size() > 3);
        CHECK(allocations.front() == allocations.back());
      }
    }
  }
}

TEST_CASE("ADMM takes the memory of its inner solver once") {
  const auto backend = std::make_shared<MeteredBackend>();
  for (const auto& grid : compact_grids(backend)) {
    const OperatorPtr<double> A = dense_operator(grid, Algorithm::stationary_a,
                                                 KnownSpectrum<double>(m, n, geometric(n, 3))),
                              I = identity<double>(A->domain());
    DistMatrix<double> B(grid, A->range().layout(3)), X(grid, A->domain().layout(3));
    B.fill(random_elements<double>(1));
    std::vector<Index> allocations, reductions;
    const auto traffic = [&grid] { return grid->comm().traffic(); };
    AdmmOptions options;
    options.inner_iterations = 2;
    options.inner_tolerance = 0;
    options.common.tolerance = 0;
    options.common.max_iterations = 5;
    options.common.observers = {
        after_each_iteration(recorder(allocations, [&backend] { return backend->allocations(); })),
        after_each_iteration(
            recorder(reductions, [&traffic] { return traffic().calls_of(CommOperation::all_reduce); }))};
    admm(A, I, threshold_penalty<double>(Threshold::soft, 0.1), B, X, options);
    if (!grid->is_member()) continue;
    CAPTURE(grid->rows(), grid->cols());
    REQUIRE(allocations.size() == 5);
    for (std::size_t k = 2; k < allocations.size(); ++k) {
      CHECK(allocations[k] - allocations[k - 1] <= 2);  // memory of sums
      // The inner solver has 2 at its start, 2 an iteration and 1 for the final norms. It agrees on memory,
      // on the scale and at the end. ADMM has 3.
      CHECK(reductions[k] - reductions[k - 1] == 2 + 2 * options.inner_iterations + 1 + 3 + 3);
    }
  }
}
