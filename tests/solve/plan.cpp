// SPDX-License-Identifier: BSD-3-Clause
// The predictions of the model for iterations and grids; and that a grid can be asked that has no ranks.
#include <array>
#include <cmath>

#include "gridlops/base/error.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "gridlops/solve/plan.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

constexpr std::array all_of_them{Algorithm::block, Algorithm::summa, Algorithm::stationary_a,
                                 Algorithm::stationary_b};

/// A machine on which nothing takes time.
MachineModel idle_machine() {
  MachineModel machine{
      .seconds_per_flop = {}, .seconds_per_read_byte = 0, .seconds_per_copied_byte = 0, .links = {}};
  machine.links.fill({.seconds_per_call = 0, .seconds_per_byte = 0});
  return machine;
}

/// Whether two times differ by rounding only.
bool same(double a, double b) { return std::abs(a - b) <= 1e-12 * std::abs(b); }

}  // namespace

TEST_CASE("A product computes and reads A at once, and the longer of both counts", "[plan]") {
  MachineModel machine = idle_machine();
  machine.seconds_per_flop = {1e-9, 2e-9, 3e-9, 4e-9};
  machine.seconds_per_read_byte = 1e-8;
  const auto seconds = [&](Index columns, ScalarType type = ScalarType::f64) {
    return product_seconds(Algorithm::block, {300, 200, columns, type}, {1, 1}, false, machine);
  };
  // 2·300·200·r flops of 2 ns, and 300·200 elements of 8 bytes of 10 ns: they meet at r = 20.
  CHECK(same(seconds(1), 300 * 200 * 8 * 1e-8));
  CHECK(same(seconds(20), 300 * 200 * 8 * 1e-8));
  CHECK(same(seconds(40), 2.0 * 300 * 200 * 40 * 2e-9));
  CHECK(same(seconds(100, ScalarType::f32), 2.0 * 300 * 200 * 100 * 1e-9));
  CHECK(same(seconds(100, ScalarType::c64), 8.0 * 300 * 200 * 100 * 3e-9));
  CHECK(same(seconds(100, ScalarType::c128), 8.0 * 300 * 200 * 100 * 4e-9));
  CHECK(same(seconds(1, ScalarType::c128), 300 * 200 * 16 * 1e-8));
  CHECK(seconds(0) == 0);
}

TEST_CASE("Each operation has a link of its own, and calls take longer among more ranks", "[plan]") {
  MachineModel machine = idle_machine();
  machine.ranks_of_links = 4;
  const auto link = [&](CommOperation operation) -> LinkModel& {
    return machine.links[static_cast<std::size_t>(operation)];
  };
  link(CommOperation::all_gather) = {.seconds_per_call = 1e-3, .seconds_per_byte = 1e-6};
  link(CommOperation::reduce_scatter) = {.seconds_per_call = 1e-2, .seconds_per_byte = 1e-5};
  // On 4 x 1 a forward product gathers 3/4 of X, and the adjoint spreads a model.
  const ProductShape shape{800, 400, 2};
  const auto seconds = [&](GridShape grid, bool adjoint) {
    return product_seconds(Algorithm::stationary_a, shape, grid, adjoint, machine);
  };
  CHECK(same(seconds({4, 1}, false), 1e-3 + 300 * 2 * 8 * 1e-6));
  CHECK(same(seconds({4, 1}, true), 1e-2 + 300 * 2 * 8 * 1e-5));
  CHECK(same(seconds({16, 1}, false), 2 * 1e-3 + 375 * 2 * 8 * 1e-6));
  CHECK(same(seconds({2, 1}, false), 0.5 * 1e-3 + 200 * 2 * 8 * 1e-6));
}

TEST_CASE("An iteration has the products of its solver, passes over vectors and sums", "[plan]") {
  MachineModel machine = idle_machine();
  machine.seconds_per_flop.fill(1e-9);
  const ProductShape shape{120, 120, 6};
  const auto seconds = [&](Solver solver, bool one_pass = false) {
    return iteration_seconds({solver, one_pass, Algorithm::stationary_a, shape}, {2, 2}, machine);
  };
  const double product = 2.0 * 60 * 60 * 6 * 1e-9;
  CHECK(same(seconds(Solver::cgls), 2 * product));
  CHECK(same(seconds(Solver::lsqr), 2 * product));
  CHECK(same(seconds(Solver::cgls, true), 3 * product));
  CHECK(same(seconds(Solver::cg), product));
  machine.links.fill({.seconds_per_call = 1e-3, .seconds_per_byte = 0});
  machine.ranks_of_links = 4;
  // Four operations in rows and columns of two ranks, and two sums over all four.
  CHECK(same(seconds(Solver::cgls), 2 * product + 4 * 0.5e-3 + 2e-3));
  machine = idle_machine();
  machine.seconds_per_copied_byte = 1e-9;
  // Models that every rank has are worked on by every rank.
  const auto on_row = [&](Algorithm algorithm) {
    return iteration_seconds({Solver::cgls, false, algorithm, {100, 100000, 6}}, {1, 8}, machine) -
           modelled_seconds(algorithm, {100, 100000, 6}, {1, 8}, machine);
  };
  CHECK(on_row(Algorithm::block) > 7 * on_row(Algorithm::stationary_a));
}

TEST_CASE("Where disks decide one pass is faster, and two where cores do", "[plan]") {
  MachineModel machine = idle_machine();
  machine.seconds_per_flop.fill(1e-9);
  const double product = 2.0 * 60 * 60 * 6 * 1e-9;
  PlannedIteration iteration{Solver::cgls, true, Algorithm::stationary_a, {120, 120, 6}};
  // They are equal where two passes read as long as one computes.
  iteration.pass_seconds = 1.4 * product;
  CHECK(same(iteration_seconds(iteration, {2, 2}, machine), 3 * product));
  CHECK(!with_faster_passes(iteration, {2, 2}, machine).one_pass);
  CHECK(same(iteration_seconds(with_faster_passes(iteration, {2, 2}, machine), {2, 2}, machine),
             2.8 * product));
  iteration.pass_seconds = 1.6 * product;
  CHECK(with_faster_passes(iteration, {2, 2}, machine).one_pass);
  iteration.one_pass = false;
  CHECK(same(iteration_seconds(iteration, {2, 2}, machine), 3.2 * product));
  CHECK(!with_faster_passes(iteration, {2, 2}, machine).one_pass);
  iteration.solver = Solver::cg;
  CHECK(same(iteration_seconds(iteration, {2, 2}, machine), 1.6 * product));
}

TEST_CASE("A factor takes half of a product with n columns, Cholesky's method, and solves", "[plan]") {
  MachineModel machine = idle_machine();
  machine.seconds_per_flop = {1e-9, 2e-9, 3e-9, 4e-9};
  const GridShape grid{2, 2};
  const auto iteration = [](Index rows, Index cols, ScalarType type, MatrixPlace place = MatrixPlace::memory,
                            Algorithm algorithm = Algorithm::stationary_a) {
    return PlannedIteration{
        .solver = Solver::direct, .algorithm = algorithm, .shape = {rows, cols, 6, type}, .place = place};
  };
  // m n²/4 multiplications and additions of a rank for the half of AᴴA, and n³/6 of each, in double.
  const double gram = 400.0 * 60 * 60 / 4, cholesky = 60.0 * 60 * 60 / 3;
  for (const auto& [rows, cols] : {std::pair<Index, Index>{400, 60}, {60, 400}}) {
    CAPTURE(rows, cols);
    for (const ScalarType type : {ScalarType::f32, ScalarType::f64})
      CHECK(same(factor_seconds(iteration(rows, cols, type), grid, machine), (gram + cholesky) * 2e-9));
    CHECK(same(factor_seconds(iteration(rows, cols, ScalarType::c64), grid, machine),
               4 * (gram + cholesky) * 4e-9));
    // Products with unit vectors give all of it, by A and by Aᴴ.
    CHECK(same(factor_seconds(iteration(rows, cols, ScalarType::f64, MatrixPlace::memory, Algorithm::summa),
                              grid, machine),
               (4 * gram + cholesky) * 2e-9));
    // Each of 6 columns takes 3 products, 4 of data, and a rank solves for 2 of them; 7 and 8 from a guess.
    const double product = 2.0 * 400 * 60 / 4 * 6 * 2e-9, solves = 2.0 * 60 * 60 * 2 * 2e-9,
                 of_data = rows < cols ? product : 0;
    const PlannedIteration of_six = iteration(rows, cols, ScalarType::f64);
    const double factor = factor_seconds(of_six, grid, machine);
    CHECK(same(direct_seconds(of_six, 6, false, grid, machine), factor + 3 * product + of_data + solves));
    CHECK(
        same(direct_seconds(of_six, 13, true, grid, machine), factor + 3 * (7 * product + of_data + solves)));
    CHECK(direct_seconds(of_six, 0, false, grid, machine) == 0);
  }
  // Disks deliver A once for its rows, and twice for every 64 of its columns.
  PlannedIteration tall = iteration(400, 60, ScalarType::f64, MatrixPlace::disk),
                   wide = iteration(100, 400, ScalarType::f64, MatrixPlace::disk);
  tall.pass_seconds = wide.pass_seconds = 1;
  CHECK(same(factor_seconds(tall, grid, machine), 1 + cholesky * 2e-9));
  CHECK(same(factor_seconds(wide, grid, machine), 4 + 100.0 * 100 * 100 / 3 * 2e-9));
  CHECK(same(direct_seconds(tall, 6, false, grid, machine),
             1 + 3 + cholesky * 2e-9 + 2.0 * 60 * 60 * 2 * 2e-9));
}

TEST_CASE("The grid is the fastest one, and near-square among those that are as fast", "[plan]") {
  CHECK(grids_of(12) == std::vector<GridShape>{{1, 12}, {2, 6}, {3, 4}, {4, 3}, {6, 2}, {12, 1}});
  CHECK(grids_of(1) == std::vector<GridShape>{{1, 1}});
  CHECK(choose_grid(12, [](GridShape) { return 1.0; }) == GridShape{3, 4});
  CHECK(choose_grid(12, [](GridShape) { return 0.0; }) == GridShape{3, 4});
  CHECK(choose_grid(12, [](GridShape grid) { return grid.rows == 12 ? 0.99 : 1.0; }) == GridShape{3, 4});
  CHECK(choose_grid(12, [](GridShape grid) { return grid.rows == 12 ? 0.5 : 1.0; }) == GridShape{12, 1});
  CHECK(choose_grid(12, [](GridShape grid) { return grid.rows > 3 ? 0.5 : 1.0; }) == GridShape{4, 3});
  CHECK_THROWS_AS(choose_grid(0, [](GridShape) { return 1.0; }), UsageError);
}

TEST_CASE("The first rank of a grid has the largest part, and needs most memory", "[plan]") {
  for (const GridShape shape : {GridShape{1, 1}, {2, 3}, {3, 2}, {4, 4}, {1, 5}, {5, 1}, {7, 3}}) {
    const auto grid = std::make_shared<const ProcessGrid>(shape, make_host_backend());
    CHECK_FALSE(grid->is_member());
    for (const Algorithm algorithm : all_of_them) {
      for (const ProductShape& product :
           {ProductShape{13, 11, 7}, {5, 29, 3}, {31, 4, 10}, {2, 3, 1}, {0, 7, 4}}) {
        INFO(name_of(algorithm) << " on " << shape.rows << "x" << shape.cols << ": " << product.rows << " x "
                                << product.cols << ", " << product.nrhs);
        const Layout A = matrix_layout(algorithm, *grid, product.rows, product.cols);
        const OperatorPtr<double> op = matrix_mult(algorithm, DistMatrix<double>(grid, A));
        const Layout X = op->domain().layout(product.nrhs), Y = op->range().layout(product.nrhs);
        const auto largest = [&](const Layout& layout) {
          const auto size = [&](int row, int col) {
            return layout.row_range(*grid, row, col).size * layout.col_range(*grid, row, col).size;
          };
          for (int row = 0; row < shape.rows; ++row)
            for (int col = 0; col < shape.cols; ++col)
              if (size(row, col) > size(0, 0)) return false;
          return true;
        };
        CHECK((largest(A) && largest(X) && largest(Y)));
        for (const bool adjoint : {false, true}) {
          const auto workspace = [&](int row, int col) {
            return product_cost(algorithm, product, shape, row, col, adjoint).workspace_bytes;
          };
          for (int row = 0; row < shape.rows; ++row)
            for (int col = 0; col < shape.cols; ++col) CHECK(workspace(row, col) <= workspace(0, 0));
        }
      }
    }
  }
  CHECK_THROWS_AS(ProcessGrid(GridShape{0, 2}, make_host_backend()), UsageError);
}

TEST_CASE("The first batch has the columns that a solver takes at once", "[plan]") {
  const ProductShape shape{10, 10, 23};
  const auto columns = [&](Algorithm algorithm, Index batch) {
    return first_batch(algorithm, shape, {2, 3}, batch).nrhs;
  };
  for (const Algorithm algorithm : all_of_them) CHECK(columns(algorithm, 0) == 23);
  CHECK(columns(Algorithm::stationary_a, 8) == 8);
  CHECK(columns(Algorithm::block, 8) == 8);  // four of each of two parts
  CHECK(columns(Algorithm::summa, 8) == 6);  // two of each of three parts
  CHECK(columns(Algorithm::stationary_b, 1) == 3);
}

TEST_CASE("What a request leaves open is chosen as the functions for it choose", "[plan]") {
  const ProductShape shape{16384, 4096, 1};
  const GridShape grid{2, 1};
  REQUIRE(one_pass_is_faster(shape, grid));
  const PlannedIteration usual = plan_iteration({.panel = 7}, shape, grid);
  CHECK(usual.algorithm == choose_algorithm(shape, grid));
  CHECK(usual.storage == faster_storage(usual.algorithm, shape, grid));
  CHECK((usual.panel == 7 && !usual.one_pass));

  const auto reads_once = [&](IterationRequest asked) {
    asked.one_pass.reset();
    return plan_iteration(asked, shape, grid).one_pass;
  };
  CHECK((reads_once({}) && reads_once({.algorithm = Algorithm::stationary_a})));
  CHECK_FALSE(reads_once({.solver = Solver::lsqr}));
  CHECK_FALSE(reads_once({.algorithm = Algorithm::block}));
  CHECK_FALSE(reads_once({.storage = Storage::columns}));
  CHECK_FALSE(reads_once({.on_host = false}));

  const PlannedIteration once = plan_iteration({.one_pass = true, .storage = Storage::columns}, shape, grid);
  CHECK((once.one_pass && once.algorithm == Algorithm::stationary_a && once.storage == Storage::packed));
  CHECK(plan_iteration({.one_pass = true, .on_host = false}, shape, grid).storage == Storage::columns);
  CHECK(plan_iteration({.algorithm = Algorithm::block, .storage = Storage::packed}, shape, grid).storage ==
        Storage::packed);
  CHECK(plan_iteration({.solver = Solver::block_cgls}, {1000, 1000, 5000}, {2, 2}).algorithm ==
        Algorithm::stationary_a);
}

TEST_CASE("The algorithm is that of the columns that a solver takes at once", "[plan]") {
  const ProductShape all{1000, 1000, 5000}, one{1000, 1000, 1};
  const GridShape grid{2, 2};
  REQUIRE(choose_algorithm(all, grid) != choose_algorithm(one, grid));
  CHECK(plan_iteration({}, all, grid).algorithm == choose_algorithm(all, grid));
  const PlannedIteration by_one = plan_iteration({.batch = 1}, all, grid);
  CHECK(by_one.algorithm == choose_algorithm(one, grid));
  CHECK(by_one.shape.nrhs == first_batch(by_one.algorithm, all, grid, 1).nrhs);

  // Algorithms that move A take it as given.
  CHECK(plan_iteration({.storage = Storage::columns}, all, grid).algorithm == choose_algorithm(all, grid));
  for (const Storage storage : {Storage::packed, Storage::planes})
    CHECK(plan_iteration({.storage = storage}, all, grid).algorithm == Algorithm::stationary_a);
  const ProductShape single{1000, 1000, 1, ScalarType::f32};
  CHECK_NOTHROW(plan_iteration({.storage = Storage::packed}, single, grid));
  CHECK_THROWS_AS(plan_iteration({.storage = Storage::planes}, single, grid), UsageError);
  CHECK_THROWS_AS(plan_iteration({.storage = Storage::planes, .on_host = false}, all, grid), UsageError);
}
