// SPDX-License-Identifier: BSD-3-Clause
// Where memory is not enough on one rank all ranks throw, none waits, and what was tried can be tried again.
#include <utility>

#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/kirchhoff.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/ops/slice_groups.hpp"
#include "gridlops/solve/ridge.hpp"
#include "gridlops/solve/solution_space.hpp"
#include "gridlops/solve/spectral_factor.hpp"
#include "gridlops/solve/spectrum.hpp"
#include "io/npy_files.hpp"
#include "solve/run/every_solver.hpp"
#include "support/agreed_failures.hpp"
#include "support/metered_backend.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Action = std::function<void()>;

std::vector<GridPtr> failing_grids() {
  return all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); });
}

/// make() sets up what the action needs, without a fault. Then every allocation of the action fails in turn,
/// on the first and on the last rank, each time for a new action.
void check_every_allocation(const GridPtr& grid, const std::string& what,
                            const std::function<Action()>& make) {
  if (!grid->is_member()) return;
  auto& backend = dynamic_cast<MeteredBackend&>(*grid->backend());
  const int last = grid->comm().size() - 1;
  for (const int failing : {0, last}) {
    for (Index k = 1;; ++k) {
      INFO(what << " " << describe(*grid) << ", allocation " << k << " of rank " << failing << " fails");
      const Action action = make();
      if (grid->comm().rank() == failing) backend.fail_at(k);
      const Ending mine = ending_of(action);
      std::array<std::int32_t, 1> has_failed{backend.has_failed()};
      grid->comm().all_reduce(has_failed, ReduceOp::min);
      backend.fail_at(0);
      INFO("it ended with: " << mine.text);
      REQUIRE(all_ended_alike(*grid, mine));
      if (mine.type == nullptr && has_failed[0] == 0) break;
      if (mine.type == nullptr) continue;  // A stays in columns where there is no room to pack it
      CHECK(*mine.type == typeid(OutOfMemory));
      const std::string prefix = "rank " + std::to_string(failing) + ": ";
      // A rank that is alone need not say which it is. The ranks of a row or column may have agreed among
      // themselves before.
      const bool agreed_twice = contains(mine.text, ": rank ");
      CHECK((mine.text.substr(0, prefix.size()) == prefix || last == 0 || agreed_twice));
      const Ending again = ending_of(action);
      INFO("and then with: " << again.text);
      CHECK(again.type == nullptr);
      REQUIRE(k < 1000);
    }
    if (last == 0) break;
  }
}

DistMatrix<double> of_integers(const GridPtr& grid, const Layout& layout, std::uint64_t seed) {
  return filled(grid, layout, [seed](Index i, Index j) { return small_integer<double>(seed, i, j); });
}

OperatorPtr<double> matrix(const GridPtr& grid, Algorithm algorithm, Index rows, Index cols,
                           const MatrixMultOptions& options = {}) {
  return matrix_mult(algorithm, of_integers(grid, matrix_layout(algorithm, *grid, rows, cols), 1), options);
}

/// Checks first applications. After a failure an operator gives what one gives that never failed.
void check_applications(const GridPtr& grid, const std::string& what,
                        const std::function<OperatorPtr<double>()>& make) {
  if (!grid->is_member()) return;
  for (const bool adjoint : {false, true}) {
    const OperatorPtr<double> sound = make();
    const Space& from = adjoint ? sound->range() : sound->domain();
    const Space& to = adjoint ? sound->domain() : sound->range();
    const auto apply = [adjoint](const LinearOperator<double>& A, const DistMatrix<double>& X,
                                 DistMatrix<double>& Y) {
      adjoint ? A.apply_adjoint(2.0, X, 0.0, Y) : A.apply(2.0, X, 0.0, Y);
    };
    const auto X = std::make_shared<DistMatrix<double>>(of_integers(grid, from.layout(5), 2));
    DistMatrix<double> expected(grid, to.layout(5));
    apply(*sound, *X, expected);
    const auto Y = std::make_shared<DistMatrix<double>>(grid, to.layout(5));
    check_every_allocation(grid, what + (adjoint ? ", adjoint," : ", forward,"), [&]() -> Action {
      const OperatorPtr<double> A = make();
      release_scratch(*grid);
      return [A, X, Y, apply] { apply(*A, *X, *Y); };
    });
    CHECK(on_host(*Y) == on_host(expected));
  }
}

}  // namespace

TEST_CASE("A matrix has its memory on all ranks or on none, and a wrong layout is an error of all") {
  for (const GridPtr& grid : failing_grids()) {
    const Layout layout{Cut::balanced(Axis::grid_rows, 13, *grid), Cut::balanced(Axis::grid_cols, 7, *grid)};
    if (!grid->is_member()) {
      CHECK(allocate_matrix<double>(grid, layout).local().empty());
      continue;
    }
    check_every_allocation(grid, "a matrix",
                           [&]() -> Action { return [&] { allocate_matrix<double>(grid, layout); }; });
    const int last = grid->comm().size() - 1;
    Layout wrong = layout;
    if (grid->comm().rank() == last)
      wrong.rows.partition = Partition::balanced(13, grid->parts(Axis::grid_rows) + 1);
    const Ending mine = ending_of([&] { allocate_matrix<double>(grid, wrong); });
    CHECK(all_ended_alike(*grid, mine));
    CHECK((mine.type != nullptr && *mine.type == typeid(ShapeError)));
    CHECK(rank_of(mine) == last);
  }
}

namespace {

/// 2·I, which meets the other ranks in do_connect(). On one rank that throws, the first time.
class Connected final : public LinearOperator<double> {
 public:
  Connected(const Space& space, int failing) : LinearOperator<double>(space, space), failing_(failing) {}

  mutable std::string calls;

 private:
  void do_connect(Op op) const override {
    Communicator& comm = domain().grid->comm();
    comm.barrier();
    calls += op == Op::none ? "c" : "C";
    if (comm.rank() == failing_ && calls.size() == 1) throw InputError("no connection");
  }
  void do_reserve(Op op, const Partition&) const override { calls += op == Op::none ? "r" : "R"; }
  void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                DistMatrix<double>& Y) const override {
    calls += "a";
    Y.grid()->backend()->kernels<double>().add(2 * alpha, X.local(), beta, Y.local());
  }
  void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                        DistMatrix<double>& X) const override {
    do_apply(alpha, Y, beta, X);
  }

  int failing_;
};

}  // namespace

TEST_CASE("Operators connect before they reserve, and what fails there on one rank fails on all") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const Space space{grid, Cut::balanced(Axis::grid_rows, 13, *grid), Axis::grid_cols};
    const DistMatrix<double> X = of_integers(grid, space.layout(3), 2), R = X.clone();
    DistMatrix<double> Y = X.clone(), U = X.clone(), V = X.clone();
    for (const int failing : {0, grid->comm().size() - 1}) {
      const Connected A(space, failing);
      check_agreed<InputError>(*grid, failing, "no connection", [&] { A.apply(1, X, 0, Y); });
      const std::string failed = grid->comm().rank() == failing ? "c" : "cr";
      CHECK(A.calls == failed);
      A.apply(1, X, 0, Y);
      CHECK(A.calls == failed + "cra");
      A.apply(1, X, 0, Y);
      CHECK(A.calls == failed + "craa");
      const Connected B(space, failing);
      check_agreed<InputError>(*grid, failing, "no connection", [&] { B.normal_product(X, R, Y, U, V); });
      CHECK(B.calls == "cCrR");
      B.normal_product(X, R, Y, U, V);
      CHECK(B.calls == "cCrRcCrRaaa");
    }
  }
}

TEST_CASE("Products of matrices have their memory on all ranks or on none") {
  for (const GridPtr& grid : failing_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (MatrixMultOptions options : {MatrixMultOptions{.panel = 3}, {.panel = 4, .column_stable = true}})
        for (const Storage storage : {Storage::columns, Storage::packed}) {
          if (storage == Storage::packed && !may_be_packed(algorithm)) continue;
          options.storage = storage;
          check_applications(grid, name_of(algorithm),
                             [&] { return matrix(grid, algorithm, 11, 13, options); });
        }
}

TEST_CASE("Products are right after memory for a normal product was not enough") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    auto& backend = dynamic_cast<MeteredBackend&>(*grid->backend());
    for (const Algorithm algorithm : all_algorithms)
      for (MatrixMultOptions options : {MatrixMultOptions{.panel = 3}, {.panel = 4, .column_stable = true}})
        for (const Storage storage : {Storage::columns, Storage::packed}) {
          if (storage == Storage::packed && !may_be_packed(algorithm)) continue;
          options.storage = storage;
          for (Index k = 1;; ++k) {
            CAPTURE(describe(*grid), name_of(algorithm), name_of(storage), options.column_stable, k);
            const OperatorPtr<double> A = matrix(grid, algorithm, 11, 13, options);
            const DistMatrix<double> X = of_integers(grid, A->domain().layout(3), 2);
            DistMatrix<double> Y(grid, A->range().layout(3)), again = Y.clone();
            DistMatrix<double> Z(grid, A->domain().layout(3)), Z_again = Z.clone();
            A->apply(1, X, 0, Y);
            A->apply_adjoint(1, Y, 0, Z);
            const DistMatrix<double> P = of_integers(grid, A->domain().layout(5), 3),
                                     R = of_integers(grid, A->range().layout(5), 4);
            DistMatrix<double> Q = R.clone(), U = P.clone(), V = P.clone();
            if (grid->comm().rank() == 0) backend.fail_at(k);
            const Ending mine = ending_of([&] { A->normal_product(P, R, Q, U, V); });
            backend.fail_at(0);
            REQUIRE(all_ended_alike(*grid, mine));
            A->apply(1, X, 0, again);
            A->apply_adjoint(1, again, 0, Z_again);
            CHECK(on_host(again) == on_host(Y));
            CHECK(on_host(Z_again) == on_host(Z));
            if (mine.type == nullptr) break;
            REQUIRE(k < 1000);
          }
        }
  }
}

TEST_CASE("More columns than ever need memory again, and fewer need none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    auto& backend = dynamic_cast<MeteredBackend&>(*grid->backend());
    for (const Algorithm algorithm : all_algorithms) {
      CAPTURE(describe(*grid), name_of(algorithm));
      const OperatorPtr<double> A = matrix(grid, algorithm, 11, 13, {.panel = 3});
      const auto apply_to = [&](Index columns) {
        const DistMatrix<double> X = of_integers(grid, A->domain().layout(columns), 2);
        DistMatrix<double> Y(grid, A->range().layout(columns));
        const Index before = backend.allocations();
        A->apply(1, X, 0, Y);
        return backend.allocations() - before;
      };
      apply_to(8);
      CHECK(apply_to(8) == 0);
      CHECK(apply_to(3) == 0);
      const int last = grid->comm().size() - 1;
      const DistMatrix<double> X = of_integers(grid, A->domain().layout(30), 2);
      DistMatrix<double> Y(grid, A->range().layout(30));
      if (grid->comm().rank() == last) backend.fail_at(1);
      const Ending mine = ending_of([&] { A->apply(1, X, 0, Y); });
      backend.fail_at(0);
      CHECK(all_ended_alike(*grid, mine));
      apply_to(3);  // may need memory again
      apply_to(30);
      CHECK(apply_to(8) == 0);
    }
  }
}

TEST_CASE("Operators made of operators have their memory on all ranks or on none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const auto A = [&] { return matrix(grid, algorithm, 11, 13, {.panel = 4}); };
      const auto square = [&] { return product(adjoint(A()), A()); };
      check_applications(grid, "a product", square);
      check_applications(grid, "a sum", [&] { return sum(square(), scale(3.0, square())); });
      check_applications(grid, "a vertical stack", [&] { return vertical_stack<double>({A(), A()}); });
      check_applications(grid, "a horizontal stack", [&] { return horizontal_stack<double>({A(), A()}); });
      check_applications(grid, "a block diagonal", [&] { return block_diagonal<double>({A(), A(), A()}); });
      check_applications(grid, "damping", [&] { return damped(A(), 2.0); });
    }
    for (const Axis rows : {Axis::grid_rows, Axis::all, Axis::uncut})
      check_applications(grid, "an identity that moves", [&] {
        return identity<double>({grid, Cut::balanced(rows, 13, *grid), Axis::uncut},
                                {grid, Cut::balanced(Axis::all_transposed, 13, *grid), Axis::uncut});
      });
  }
}

TEST_CASE("Transforms and convolutions have their memory on all ranks or on none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const Space kernel = array_space(grid, {4, 3, 2}, 0);
    check_applications(grid, "the spectra of traces", [&] {
      return trace_spectra<double>(array_space(grid, {4, 3}, 0), 7);
    });
    check_applications(grid, "a convolution", [&] {
      DistMatrix<std::complex<double>> G(grid, kernel.layout(1));
      G.fill([](Index i, Index j) { return small_integer<std::complex<double>>(3, i, j); });
      return multidimensional_convolution<double>(fredholm(kernel, std::move(G)), {.samples = 7});
    });
  }
}

TEST_CASE("Migrations have their memory on all ranks or on none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    for (const Axis axis : {Axis::uncut, Axis::grid_cols})
      for (const Index table_bytes : {KirchhoffOptions{}.table_bytes, Index{200}})
        check_applications(grid, "a migration", [&] {
          const Space data = array_space(grid, {3, 2, 9}, 0), image = array_space(grid, {5, 4}, 0, axis);
          const RayValues times =
              straight_rays({5, 4}, {{0, 0}, {1, 1}}, {{0, 0}, {2, 0}, {4, 0}}, {{1, 0}, {3, 0}}, 2);
          return kirchhoff<double>(data, image, times, {1, {1, 2, 1}, 1}, {{}, table_bytes});
        });
  }
}

TEST_CASE("An operator has scratch memory by itself, within others and within callers' operators") {
  /// Its parts, as a caller's operator.
  class Callers final : public LinearOperator<double> {
   public:
    explicit Callers(OperatorPtr<double> A)
        : LinearOperator<double>(A->range(), A->domain()), A_(std::move(A)) {}

   private:
    void do_apply(double alpha, const ConstDistMatrix<double>& X, double beta,
                  DistMatrix<double>& Y) const override {
      A_->apply(alpha, X, beta, Y);
    }
    void do_apply_adjoint(double alpha, const ConstDistMatrix<double>& Y, double beta,
                          DistMatrix<double>& X) const override {
      A_->apply_adjoint(alpha, Y, beta, X);
    }
    OperatorPtr<double> A_;
  };
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    auto& backend = dynamic_cast<MeteredBackend&>(*grid->backend());
    const Space space{grid, Cut::balanced(Axis::all, 13, *grid), Axis::uncut},
        moved{grid, Cut::balanced(Axis::grid_rows, 13, *grid), Axis::uncut};
    const OperatorPtr<double> there = identity<double>(moved, space), back = identity<double>(space, moved),
                              A = product(back, there), callers = std::make_shared<const Callers>(A);
    const std::vector<std::pair<OperatorPtr<double>, double>> multiples{{A, 1},
                                                                        {sum(A, A), 2},
                                                                        {product(A, product(A, callers)), 1},
                                                                        {callers, 1},
                                                                        {sum(callers, product(A, A)), 2}};
    const auto multiply = [&](const OperatorPtr<double>& B, double factor, Index columns) {
      const DistMatrix<double> X = of_integers(grid, space.layout(columns), 2);
      DistMatrix<double> Y = X.clone();
      B->apply(2, X, 1, Y);
      CHECK(mismatches(
                Y, [&](Index i, Index j) { return (2 * factor + 1) * small_integer<double>(2, i, j); }) == 0);
    };
    for (const Index columns : {3, 5})
      for (const auto& [B, factor] : multiples) multiply(B, factor, columns);
    for (const auto& [B, factor] : multiples) {
      const DistMatrix<double> X = of_integers(grid, space.layout(5), 2);
      DistMatrix<double> Y = X.clone();
      const Index made = backend.allocations();
      B->apply(2, X, 1, Y);
      CHECK(backend.allocations() == made);
    }
    // A product that is too large takes the memory of the others, who take it again.
    const DistMatrix<double> X = of_integers(grid, space.layout(70), 2);
    DistMatrix<double> Y = X.clone();
    if (grid->comm().rank() == 0) backend.fail_at(1);
    const Ending mine = ending_of([&] { A->apply(1, X, 0, Y); });
    backend.fail_at(0);
    CHECK(all_ended_alike(*grid, mine));
    CHECK(mine.type != nullptr);
    for (const auto& [B, factor] : multiples) multiply(B, factor, 4);
    const Index in_use = backend.bytes_in_use();
    release_scratch(*grid);
    CHECK(backend.bytes_in_use() < in_use);
    for (const auto& [B, factor] : multiples) multiply(B, factor, 4);
    CHECK(backend.bytes_in_use() <= in_use);
  }
}

TEST_CASE("After ranks have applied different things, operators that worked before go on") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member() || grid->comm().size() == 1) continue;
    INFO(describe(*grid));
    const Space space{grid, Cut::balanced(Axis::all, 13, *grid), Axis::uncut},
        moved{grid, Cut::balanced(Axis::all_transposed, 13, *grid), Axis::uncut};
    const OperatorPtr<double> A = identity<double>(moved, space), B = identity<double>(moved, space);
    const DistMatrix<double> X = of_integers(grid, space.layout(3), 2);
    DistMatrix<double> Y(grid, moved.layout(3));
    A->apply(1, X, 0, Y);
    const bool is_first = grid->comm().rank() == 0;
    const Ending mine = ending_of([&] { is_first ? B->apply(1, X, 0, Y) : static_cast<void>(gather(X, 0)); });
    CHECK((mine.type != nullptr && *mine.type == typeid(UsageError)));
    A->apply(2, X, 0, Y);
    CHECK(mismatches(Y, [](Index i, Index j) { return 2 * small_integer<double>(2, i, j); }) == 0);
  }
}

TEST_CASE("Slices on groups of ranks have their memory on all ranks or on none") {
  const std::vector<ProductShape> slices{{5, 3}, {2, 4}, {7, 2}};
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const int ranks = grid->shape().size();
    // The first rank's group and the last rank's are different ones, so that the lack of one is told to all.
    std::vector<RankGroup> division{{near_square(ranks), 3}};
    if (ranks > 1) division = {{near_square(ranks / 2), 2}, {near_square(ranks - ranks / 2), 1}};
    const SliceGroups groups(grid, slices, division);
    for (const Storage storage : {Storage::columns, Storage::packed}) {
      check_applications(grid, "slices of groups", [&] {
        std::vector<DistMatrix<double>> A = allocate_slices<double>(groups);
        for (DistMatrix<double>& matrix : A)
          matrix.fill([](Index i, Index j) { return small_integer<double>(3, i, j); });
        return grouped_slices<double>(groups, std::move(A), {.storage = storage});
      });
    }
    const Space from = Space{grid, Cut::balanced(Axis::all, 9, *grid)};
    check_applications(grid, "the way into groups",
                       [&] { return into_groups<double>(groups.models(), from); });
    const SliceGroups same(grid, {{4, 3}, {4, 3}, {4, 3}}, division);
    const Space kernel = array_space(grid, {3, 3, 4}, 0);
    const DistMatrix<double> G = of_integers(grid, kernel.layout(1), 4);
    check_every_allocation(grid, "slices of a kernel",
                           [&]() -> Action { return [&] { slices_of_kernel<double>(same, kernel, G); }; });
  }
}

TEST_CASE("Spaces of solutions have their memory on all ranks or on none") {
  const ScratchFolder folder;
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const OperatorPtr<double> A = matrix(grid, Algorithm::stationary_a, 43, 41);
    const DistMatrix<double> B = of_integers(grid, A->range().layout(5), 2);
    const SpaceOptions options{.damps = {0.1}, .has_probe = true};
    check_every_allocation(grid, "a space",
                           [&]() -> Action { return [&] { SolutionSpace<double>(A, B, options); }; });
    const auto space = std::make_shared<SolutionSpace<double>>(A, B, options);
    const std::string directory = folder.file(describe(*grid));
    space->save(directory);
    grid->comm().barrier();
    check_every_allocation(grid, "a space in files",
                           [&]() -> Action { return [&] { SolutionSpace<double>(A, directory); }; });
    check_every_allocation(grid, "solutions in a space", [&]() -> Action {
      const auto X = std::make_shared<DistMatrix<double>>(grid, A->domain().layout(5));
      return [&, X] {
        space->solve(B, *X, {.damp = 0.1});
        space->solve_others(B, *X, {.damp = 0.1});
      };
    });
  }
}

TEST_CASE("Factors of all dampings have their memory on all ranks or on none") {
  const std::vector<double> damps{0.1, 2};
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    for (const Index rows : {9, 5}) {
      const OperatorPtr<double> A = matrix(grid, Algorithm::stationary_a, rows, 7);
      const DistMatrix<double> B = of_integers(grid, A->range().layout(3), 2);
      check_every_allocation(grid, "a spectral factor",
                             [&]() -> Action { return [&] { static_cast<void>(spectral_factor(*A)); }; });
      if (rows >= 7)
        check_every_allocation(grid, "a proven smallest singular value",
                               [&]() -> Action { return [&] { static_cast<void>(proven_sigma_min(*A)); }; });
      const auto V = spectral_factor(*A, 0.1);
      check_every_allocation(grid, "curves of dampings", [&]() -> Action {
        return [&] { static_cast<void>(damping_curves(*A, B, *V, damps, DampingRule::discrepancy, 1)); };
      });
    }
  }
}

TEST_CASE("A ridge has its memory on all ranks or on none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    for (const Index rows : {12, 4}) {
      const OperatorPtr<double> A = matrix(grid, Algorithm::stationary_a, rows, 5);
      const DistMatrix<double> B = of_integers(grid, A->range().layout(3), 2);
      const auto X = std::make_shared<DistMatrix<double>>(grid, A->domain().layout(3));
      const RidgeOptions options{.alphas = {1, 2}, .folds = contiguous_folds(rows, 2)};
      check_every_allocation(grid, "a ridge", [&]() -> Action {
        return [&, X] { static_cast<void>(ridge(*A, B, options, X.get())); };
      });
    }
  }
}

TEST_CASE("Operators along a dimension have their memory on all ranks or on none") {
  const std::vector<double> matrix(6, 2.0);
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const Space space = array_space(grid, {9, 3}, 0);
    check_applications(grid, "an interpolation", [&] {
      return interpolation<double>(space, 0, {0.5, 2.5, 4.25, 7.75});
    });
    for (const int dim : {0, 1})
      check_applications(grid, "a matrix along a dimension", [&] {
        return matrix_along<double>(array_space(grid, {3, 3}, 0), dim, {matrix.data(), 2, 3});
      });
  }
}

TEST_CASE("Matrices are gathered, scattered and moved on all ranks or on none") {
  for (const GridPtr& grid : failing_grids()) {
    if (!grid->is_member()) continue;
    const Layout blocks = blocks_2d(*grid, 11, 13),
                 other{Cut::uncut(11), Cut::balanced(Axis::all, 13, *grid)};
    const auto X = std::make_shared<DistMatrix<double>>(of_integers(grid, blocks, 1));
    const auto Y = std::make_shared<DistMatrix<double>>(grid, other);
    for (const int root : {0, grid->comm().size() - 1}) {
      const std::vector<double> whole = gather(*X, root);
      check_every_allocation(grid, "gather", [&]() -> Action { return [=] { gather(*X, root); }; });
      check_every_allocation(grid, "scatter", [&]() -> Action { return [=] { scatter(whole, root, *Y); }; });
      CHECK(gather(*Y, root) == whole);
    }
    check_every_allocation(grid, "redistribute", [&]() -> Action { return [=] { redistribute(*X, *Y); }; });
  }
}

TEST_CASE("Solvers have their memory on all ranks or on none", "[solver_memory]") {
  for (const GridPtr& grid : failing_grids())
    for (const auto& call : solver_calls())
      for (const bool correction : {false, true}) {
        SolveOptions options = at_most(4);
        options.damp = correction ? 0.5 : 0;
        options.initial_guess = correction;
        options.batch = correction ? 2 : 0;
        check_every_allocation(grid, call.first, [&]() -> Action {
          const auto problem = std::make_shared<Problem>(grid);
          return [problem, &call, options] { call.second(*problem, options); };
        });
      }
}

TEST_CASE("Sparse solvers, inversions, estimates and dot tests have their memory on all ranks or on none") {
  Calls<> calls = estimate_calls();
  for (const auto& call : inversion_calls())
    calls.emplace_back(call.first, [&call](Problem& p) { call.second(p, at_most(3)); });
  calls.emplace_back("normal product",
                     [](Problem& p) { p.packed_A->normal_product(p.X, p.B, p.Y, p.R, p.variances); });
  for (const GridPtr& grid : failing_grids())
    for (const auto& call : calls)
      check_every_allocation(grid, call.first, [&]() -> Action {
        const auto problem = std::make_shared<Problem>(grid);
        return [problem, &call] { call.second(*problem); };
      });
}
