// SPDX-License-Identifier: BSD-3-Clause
// The counters of the communicators show what the cost model says, on every rank.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "gridlops/base/error.hpp"
#include "gridlops/comm/mpi.hpp"
#include "gridlops/ops/cost_model.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "ops/matrix/algorithms.hpp"
#include "ops/panels/panels.hpp"
#include "support/metered_backend.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// While it lives, this process gets at most 2 GiB more than it has, so that what lists too much fails before
/// it takes all memory.
class LittleMemory {
 public:
  LittleMemory() {
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    set(std::min(before_.rlim_max, pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{2} << 30)));
  }
  ~LittleMemory() { set(before_.rlim_cur); }
  LittleMemory(const LittleMemory&) = delete;
  LittleMemory& operator=(const LittleMemory&) = delete;

 private:
  void set(rlim_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
  }
  rlimit before_{};
};

std::vector<GridPtr> metered_grids() {
  return all_grids([] { return std::make_shared<MeteredBackend>(make_backend()); });
}

/// The traffic of one rank in an application that was not the first.
struct Observation {
  Index sent = 0, received = 0, calls = 0, broadcasts = 0;
  Index scratch = 0;  // bytes that the operator keeps afterwards
};

template <Scalar T>
Observation observe(const GridPtr& grid, Algorithm algorithm, const ProductShape& shape, bool adjoint,
                    const MatrixMultOptions& options = {}) {
  const auto& memory = dynamic_cast<const MeteredBackend&>(*grid->backend());
  DistMatrix<T> A(grid, matrix_layout(algorithm, *grid, shape.rows, shape.cols));
  A.fill([](Index i, Index j) { return small_integer<T>(1, i, j); });
  const OperatorPtr<T> op = matrix_mult(algorithm, std::move(A), options);
  DistMatrix<T> X(grid, op->domain().layout(shape.nrhs)), Y(grid, op->range().layout(shape.nrhs));
  X.fill([](Index i, Index j) { return small_integer<T>(2, i, j); });
  Y.fill([](Index i, Index j) { return small_integer<T>(3, i, j); });
  const Index bytes_before = memory.bytes_in_use();
  const auto apply = [&] { adjoint ? op->apply_adjoint(T(1), Y, T(1), X) : op->apply(T(1), X, T(1), Y); };
  apply();  // takes the memory, on which the ranks agree
  const TrafficSince traffic(world());
  apply();
  return {traffic.sent(), traffic.received(), traffic.calls(), traffic.calls(CommOperation::broadcast),
          memory.bytes_in_use() - bytes_before};
}

template <Scalar T>
void check_cost(const GridPtr& grid, Algorithm algorithm, ProductShape shape, bool adjoint,
                const MatrixMultOptions& options) {
  shape.type = scalar_type_of<T>;
  INFO(describe(*grid) << ": " << name_of(algorithm) << (adjoint ? ", adjoint" : ", forward") << ", "
                       << shape.rows << " x " << shape.cols << ", " << shape.nrhs << " columns of "
                       << name_of(shape.type) << ", panel " << options.panel);
  const Observation seen = observe<T>(grid, algorithm, shape, adjoint, options);
  RankCost modelled;
  if (grid->is_member()) {
    const GridShape PQ = grid->shape();
    modelled = product_cost(algorithm, shape, PQ, grid->my_row(), grid->my_col(), adjoint, options.panel);
    // Groups of one rank also call, but join nobody.
    const bool lonely = PQ.rows == 1 || PQ.cols == 1;
    CHECK((seen.calls == modelled.messages || (lonely && algorithm == Algorithm::stationary_b)));
  }
  CHECK(seen.sent == modelled.bytes_sent);
  CHECK(seen.received == modelled.bytes_received);
  CHECK(sum_over_ranks(seen.sent - seen.received) == 0);
}

void check_scratch(const GridPtr& grid, Algorithm algorithm, const ProductShape& shape, bool adjoint,
                   const MatrixMultOptions& options) {
  INFO(describe(*grid) << ": " << name_of(algorithm) << (adjoint ? ", adjoint" : ", forward") << ", "
                       << shape.rows << " x " << shape.cols << ", " << shape.nrhs << " columns, panel "
                       << options.panel);
  const Observation seen = observe<double>(grid, algorithm, shape, adjoint, options);
  if (!grid->is_member()) return;
  const RankCost modelled =
      product_cost(algorithm, shape, grid->shape(), grid->my_row(), grid->my_col(), adjoint, options.panel);
  CHECK(seen.scratch <= modelled.workspace_bytes);
}

constexpr std::array shapes{ProductShape{12, 24, 12}, ProductShape{13, 11, 7}, ProductShape{5, 29, 3},
                            ProductShape{31, 4, 10},  ProductShape{1, 1, 1},   ProductShape{2, 3, 1},
                            ProductShape{0, 7, 4},    ProductShape{7, 0, 4},   ProductShape{9, 8, 0},
                            ProductShape{3, 2, 17}};

}  // namespace

TEST_CASE("A grid, its rows and its columns keep one account", "[product_traffic]") {
  for (const GridPtr& grid : metered_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    CHECK(&grid->comm().traffic() == &world().traffic());
    CHECK(&grid->row_comm().traffic() == &world().traffic());
    CHECK(&grid->col_comm().traffic() == &world().traffic());
  }
}

TEST_CASE("Counted bytes are the modelled ones on every rank", "[product_traffic]") {
  for (const GridPtr& grid : metered_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (const ProductShape& shape : shapes)
        for (const bool adjoint : {false, true})
          check_cost<double>(grid, algorithm, shape, adjoint, {.panel = 4});
}

TEMPLATE_LIST_TEST_CASE("Counted bytes are the modelled ones for every type and option", "[product_traffic]",
                        Scalars) {
  for (const GridPtr& grid : metered_grids())
    for (const Algorithm algorithm : all_algorithms)
      for (const bool adjoint : {false, true})
        for (const MatrixMultOptions& options :
             {MatrixMultOptions{}, {.panel = 1, .lookahead = 3}, {.panel = 5, .column_stable = true}})
          check_cost<TestType>(grid, algorithm, {11, 13, 5}, adjoint, options);
}

TEST_CASE("Where sizes divide, the bytes are those of the design's table", "[product_traffic]") {
  // m, n and r are multiples of every P and Q that tests use, and of the nested cuts.
  const Index m = 72, n = 144, r = 36, bytes = 8;
  for (const GridPtr& grid : metered_grids()) {
    const Index P = grid->rows(), Q = grid->cols();
    if (36 % (P * Q) != 0) continue;
    for (const bool adjoint : {false, true}) {
      const auto received = [&](Algorithm algorithm) {
        return observe<double>(grid, algorithm, {m, n, r}, adjoint).received;
      };
      INFO(describe(*grid) << (adjoint ? ", adjoint" : ", forward"));
      const Index block = received(Algorithm::block), summa = received(Algorithm::summa),
                  stationary_a = received(Algorithm::stationary_a),
                  stationary_b = received(Algorithm::stationary_b);
      if (!grid->is_member()) continue;
      const Index all_reduced = 2 * (n * r / P) * (Q - 1) / Q;
      CHECK(block == (adjoint ? all_reduced * bytes : 0));
      CHECK(stationary_a == bytes * (n / Q * r * (P - 1) / P + m / P * r * (Q - 1) / Q));
      CHECK(summa == bytes * (m / P * n * (Q - 1) / Q + n * r / Q * (P - 1) / P));
      const Range mine_of_A{grid->my_col() * n / Q, n / Q}, mine_of_X{grid->my_row() * n / P, n / P};
      const Index owned = m / P * intersect(mine_of_A, mine_of_X).size;
      CHECK(stationary_b == bytes * (m * n / P - owned + m * r / Q * (P - 1) / P));
    }
  }
}

TEST_CASE("stationary-a sends nothing that grows with the matrix", "[product_traffic]") {
  // With r fixed, twice the rows and columns mean twice the bytes, not four times as many.
  for (const GridPtr& grid : metered_grids()) {
    for (const bool adjoint : {false, true}) {
      INFO(describe(*grid) << (adjoint ? ", adjoint" : ", forward"));
      const Observation small = observe<double>(grid, Algorithm::stationary_a, {36, 36, 2}, adjoint);
      const Observation large = observe<double>(grid, Algorithm::stationary_a, {72, 72, 2}, adjoint);
      const Index difference = large.received - 2 * small.received;
      CHECK((difference == 0 || 36 % grid->shape().size() != 0));
    }
  }
}

TEST_CASE("summa broadcasts one panel of each factor per step", "[product_traffic]") {
  for (const GridPtr& grid : metered_grids()) {
    for (const Index panel : {1, 3, 100}) {
      INFO(describe(*grid) << ", panel " << panel);
      const Index n = 13;
      const auto blocks =
          common_refinement(Partition::balanced(n, grid->cols()), Partition::balanced(n, grid->rows()));
      Index steps = 0;
      for (const Range& block : blocks) steps += (block.size + panel - 1) / panel;
      const Index moving_A = grid->cols() > 1, moving_X = grid->rows() > 1;
      const Index forward =
          observe<float>(grid, Algorithm::summa, {7, n, 5}, false, {.panel = panel}).broadcasts;
      const Index adjoint =
          observe<float>(grid, Algorithm::summa, {7, n, 5}, true, {.panel = panel}).broadcasts;
      if (!grid->is_member()) continue;
      CHECK(forward == steps * (moving_A + moving_X));
      CHECK(adjoint == steps * moving_A);
    }
  }
}

TEST_CASE("Operators keep no more scratch memory than the model says", "[product_traffic]") {
  for (const GridPtr& grid : metered_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const ProductShape& shape : shapes)
        for (const bool adjoint : {false, true})
          for (const Index panel : {0, 4}) check_scratch(grid, algorithm, shape, adjoint, {.panel = panel});
    }
  }
}

TEST_CASE("Panels are counted, not listed", "[product_traffic]") {
  // NCCL reserves more addresses than are left after this.
  const auto grid = std::make_shared<ProcessGrid>(world(), GridShape{1, world().size()}, make_host_backend());
  const LittleMemory little;
  // On 2 x 2 ranks each half is cut at 256; a step sends in rows and in columns.
  constexpr Index many = Index{1} << 45, steps = many / 256;
  const auto messages = [&](Algorithm algorithm, const ProductShape& shape) {
    return product_cost(algorithm, shape, {2, 2}, 0, 1, false).messages;
  };
  CHECK(messages(Algorithm::summa, {3, many, 2}) == 2 * steps);
  CHECK(messages(Algorithm::stationary_b, {many, 3, 2}) == 3 * steps);
  CHECK(normal_product_cost({many, 3, 2}, {1, 2}, 0, 1).messages ==
        1 + many / one_pass_chunk(2, sizeof(double)));
  for (const ProductShape& shape : {ProductShape{3, many, 2}, {many, 3, 2}, {0, many, 2}, {many, 0, 2}})
    CHECK(choose_algorithm(shape, {2, 2}) != Algorithm::automatic);
  // Nor are the panels of a product without elements.
  if (grid->is_member()) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const auto& [rows, cols] : {std::pair{Index{0}, many}, {many, Index{0}}}) {
        DistMatrix<double> A(grid, matrix_layout(algorithm, *grid, rows, cols));
        const OperatorPtr<double> op = matrix_mult(algorithm, std::move(A));
        CHECK((op->rows() == rows && op->cols() == cols));
      }
    }
  }
}

TEST_CASE("No panel is wider than the dimension that it cuts", "[product_traffic]") {
  constexpr Index widest = std::numeric_limits<Index>::max();
  CHECK(cut_into_panels({{0, 3}, {3, 4}}, widest) == std::vector<Range>{{0, 3}, {3, 4}});
}

TEST_CASE("The normal product moves what the model says, and keeps no more scratch memory",
          "[product_traffic]") {
  // Only hosts pack A.
  for (const GridPtr& grid : all_grids([] { return std::make_shared<MeteredBackend>(); })) {
    const auto& memory = dynamic_cast<const MeteredBackend&>(*grid->backend());
    for (const ProductShape& shape : shapes) {
      INFO(describe(*grid) << ": " << shape.rows << " x " << shape.cols << ", " << shape.nrhs << " columns");
      DistMatrix<double> A(grid, matrix_layout(Algorithm::stationary_a, *grid, shape.rows, shape.cols));
      A.fill([](Index i, Index j) { return small_integer<double>(1, i, j); });
      const OperatorPtr<double> op =
          matrix_mult(Algorithm::stationary_a, std::move(A), {.storage = Storage::packed});
      DistMatrix<double> P(grid, op->domain().layout(shape.nrhs)), R(grid, op->range().layout(shape.nrhs));
      P.fill([](Index i, Index j) { return small_integer<double>(2, i, j); });
      R.fill([](Index i, Index j) { return small_integer<double>(3, i, j); });
      DistMatrix<double> Q = R.clone(), U = P.clone(), V = P.clone(), one(grid, op->range().layout(1));
      op->apply(1.0, DistMatrix<double>(grid, op->domain().layout(1)), 0.0, one);  // packs A
      const Index bytes_before = memory.bytes_in_use();
      op->normal_product(P, R, Q, U, V);  // takes the memory, on which the ranks agree
      const TrafficSince traffic(world());
      op->normal_product(P, R, Q, U, V);
      RankCost modelled;
      if (grid->is_member())
        modelled = normal_product_cost(shape, grid->shape(), grid->my_row(), grid->my_col());
      CHECK(traffic.sent() == modelled.bytes_sent);
      CHECK(traffic.received() == modelled.bytes_received);
      CHECK(traffic.calls() == modelled.messages);
      CHECK(sum_over_ranks(traffic.sent() - traffic.received()) == 0);
      CHECK(memory.bytes_in_use() - bytes_before <= modelled.workspace_bytes);
    }
  }
}

TEST_CASE("Packing is for some columns, and for blocks that leave the caches", "[product_traffic]") {
  const auto storage = [](Algorithm algorithm, Index columns, GridShape grid = {2, 1}, Index rows = 16384) {
    return faster_storage(algorithm, {rows, 4096, columns}, grid);
  };
  CHECK(storage(Algorithm::stationary_a, 0) == Storage::columns);
  CHECK(storage(Algorithm::summa, 16) == Storage::columns);
  CHECK(storage(Algorithm::stationary_b, 16) == Storage::columns);
  CHECK(storage(Algorithm::stationary_a, 16, {64, 1}) == Storage::columns);
  CHECK(storage(Algorithm::stationary_a, 16, {2, 1}, 1000) == Storage::columns);      // blocks of 16 MB
  CHECK(storage(Algorithm::stationary_a, 16, {1, 64}, 1 << 20) == Storage::columns);  // of 64 columns
  CHECK(storage(Algorithm::stationary_a, 100000) == Storage::columns);
  const Storage some = storage(Algorithm::stationary_a, 16);  // by the processor
  CHECK(storage(Algorithm::stationary_a, 1) == some);
  CHECK(storage(Algorithm::stationary_a, 128) == some);
  CHECK(storage(Algorithm::stationary_a, 129) == Storage::columns);
  CHECK(storage(Algorithm::block, 256) == some);  // half of them on either grid row
  CHECK(storage(Algorithm::block, 258) == Storage::columns);
}

TEST_CASE("One pass is for few columns, and for blocks that leave the caches", "[product_traffic]") {
  CHECK(one_pass_is_faster({16384, 4096, 1}, {2, 1}));
  CHECK_FALSE(one_pass_is_faster({16384, 4096, 16}, {2, 1}));
  CHECK(one_pass_is_faster({16384, 4096, 1, ScalarType::c64}, {2, 1}));
  CHECK_FALSE(one_pass_is_faster({16384, 4096, 8, ScalarType::c64}, {2, 1}));
  // Waiting for others takes away some of it.
  for (const ScalarType type : {ScalarType::f32, ScalarType::f64, ScalarType::c64, ScalarType::c128})
    for (const Index columns : {1, 2, 3, 4, 6})
      CHECK(one_pass_is_faster({16384, 4096, columns, type}, {1, 2}) <=
            one_pass_is_faster({16384, 4096, columns, type}, {2, 1}));
  CHECK_FALSE(one_pass_is_faster({16384, 4096, 0}, {2, 1}));
  CHECK_FALSE(one_pass_is_faster({1000, 1000, 1}, {1, 1}));
  CHECK_FALSE(one_pass_is_faster({16384, 4096, 1}, {64, 1}));
}

TEST_CASE(
    "Without flops, latency and copies the model's time is that of the bytes, and the choice moves least",
    "[product_traffic]") {
  MachineModel bytes_only{
      .seconds_per_flop = {}, .seconds_per_read_byte = 0, .seconds_per_copied_byte = 0, .links = {}};
  bytes_only.links.fill({.seconds_per_call = 0, .seconds_per_byte = 1});
  for (const GridPtr& grid : metered_grids()) {
    for (const ProductShape& shape : shapes) {
      std::map<Algorithm, double> seconds;
      for (const Algorithm algorithm : all_algorithms) {
        std::array<Index, 2> most{}, most_of_both{};
        for (const bool adjoint : {false, true}) {
          const Observation seen = observe<double>(grid, algorithm, shape, adjoint);
          most[adjoint] = seen.received;
          most_of_both[adjoint] = seen.received + seen.sent;
        }
        world().all_reduce(most, ReduceOp::max);
        world().all_reduce(most_of_both, ReduceOp::max);
        INFO(describe(*grid) << ": " << name_of(algorithm) << ", " << shape.rows << " x " << shape.cols
                             << ", " << shape.nrhs << " columns");
        const double modelled = modelled_seconds(algorithm, shape, grid->shape(), bytes_only);
        if (never_moves_A(algorithm)) CHECK(modelled == static_cast<double>(most[0] + most[1]));
        // A root's time passes, too, while the others receive.
        if (algorithm == Algorithm::summa)
          CHECK(modelled <= static_cast<double>(most_of_both[0] + most_of_both[1]));
        if (algorithm == Algorithm::block && grid->rows() > 1) continue;
        seconds[algorithm] = modelled;
      }
      const auto less = [](const auto& one, const auto& other) { return one.second < other.second; };
      const double least = std::min_element(seconds.begin(), seconds.end(), less)->second;
      const Algorithm choice = choose_algorithm(shape, grid->shape(), bytes_only);
      REQUIRE(seconds.contains(choice));
      CHECK(seconds[choice] <= (never_moves_A(choice) ? 1.10 : 1.01) * least);
    }
  }
}

TEST_CASE("The choice follows the largest matrix", "[product_traffic]") {
  CHECK(choose_algorithm({4000, 4000, 1}, {2, 2}) == Algorithm::stationary_a);
  CHECK(choose_algorithm({100000, 2000, 16}, {4, 4}) == Algorithm::stationary_a);
  CHECK(choose_algorithm({4000, 4000, 16000}, {3, 3}) == Algorithm::summa);
  CHECK(choose_algorithm({16000, 4000, 16000}, {3, 3}) == Algorithm::summa);
  CHECK(choose_algorithm({2000, 16000, 16000}, {3, 3}) == Algorithm::stationary_b);
  // On one grid row block keeps no copies; it then moves n·r where stationary-a moves m·r.
  CHECK(choose_algorithm({100000, 1000, 4}, {1, 4}) == Algorithm::block);
  CHECK(choose_algorithm({1000, 100000, 4}, {1, 4}) == Algorithm::stationary_a);
  CHECK(choose_algorithm({100, 100, 10}, {1, 1}) == Algorithm::block);
}

TEST_CASE("The choice knows what ranks read in place", "[product_traffic]") {
  const MachineModel messages, shared{.rows_share_memory = true, .columns_share_memory = true},
      rows_only{.rows_share_memory = true};
  for (const GridShape grid : {GridShape{2, 1}, {1, 2}, {2, 2}, {4, 3}}) {
    INFO(grid.rows << "x" << grid.cols);
    // Nothing is gathered or sent, and products come in few steps.
    CHECK(choose_algorithm({1024, 1024, 1024}, grid, shared) == Algorithm::summa);
    // With few columns A stays where it can be stored as products like it best.
    for (const Index columns : {1, 4, 16, 64})
      for (const MachineModel& machine : {messages, shared, rows_only})
        CHECK(never_moves_A(choose_algorithm({8192, 4096, columns}, grid, machine)));
    const ProductShape odd{1024, 700, 900};
    for (const Algorithm algorithm : {Algorithm::summa, Algorithm::stationary_a}) {
      const double sent = modelled_seconds(algorithm, odd, grid, messages);
      CHECK(modelled_seconds(algorithm, odd, grid, shared) < sent);
      CHECK((modelled_seconds(algorithm, odd, grid, rows_only) < sent) == (grid.cols > 1));
    }
    // These algorithms send messages on any transport.
    for (const Algorithm algorithm : {Algorithm::block, Algorithm::stationary_b})
      CHECK(modelled_seconds(algorithm, odd, grid, shared) ==
            modelled_seconds(algorithm, odd, grid, messages));
  }
}

TEST_CASE("The model of a grid knows its transport", "[product_traffic]") {
  if (world().transport() != "mpi") return;  // on GPUs no memory is shared
  for (const char* transport : {"mpi", "shared"}) {
    const ProcessGrid grid(*make_host_communicator(world(), transport), near_square(world().size()),
                           make_host_backend());
    const bool shares = transport == std::string("shared");
    CHECK(with_shared_memory({}, grid).rows_share_memory == shares);
    CHECK(with_shared_memory({}, grid).columns_share_memory == shares);
  }
}

TEST_CASE("All ranks of a grid have one model", "[product_traffic]") {
  if (world().transport() != "mpi") return;
  const ProcessGrid grid(*make_host_communicator(world(), "auto"), near_square(world().size()),
                         make_host_backend());
  const MachineModel machine = with_shared_memory({}, grid);
  std::array<std::int32_t, 2> least{machine.rows_share_memory, machine.columns_share_memory}, most = least;
  world().all_reduce(least, ReduceOp::min);
  world().all_reduce(most, ReduceOp::max);
  CHECK(least == most);
}

TEST_CASE("The flops of all ranks are those of one product", "[product_traffic]") {
  for (const GridShape grid : {GridShape{1, 1}, {2, 3}, {5, 2}, {7, 1}}) {
    for (const Algorithm algorithm : all_algorithms) {
      for (const ProductShape& shape : shapes) {
        INFO(name_of(algorithm) << " on " << grid.rows << "x" << grid.cols);
        double real = 0, complex = 0;
        ProductShape complex_shape = shape;
        complex_shape.type = ScalarType::c64;
        for (int rank = 0; rank < grid.size(); ++rank) {
          const int row = rank / grid.cols, col = rank % grid.cols;
          real += product_cost(algorithm, shape, grid, row, col, false).flops;
          complex += product_cost(algorithm, complex_shape, grid, row, col, true).flops;
        }
        CHECK(real == static_cast<double>(2 * shape.rows * shape.cols * shape.nrhs));
        CHECK(complex == 4 * real);
      }
    }
  }
}

TEST_CASE("Algorithms have names", "[product_traffic]") {
  for (const Algorithm algorithm : all_algorithms) CHECK(parse_algorithm(name_of(algorithm)) == algorithm);
  CHECK(parse_algorithm("auto") == Algorithm::automatic);
  CHECK(parse_algorithm("stationary-a") == Algorithm::stationary_a);
  CHECK_THROWS_AS(parse_algorithm("cannon"), UsageError);
  CHECK_THROWS_AS(parse_algorithm(""), UsageError);
  for (const Storage storage : {Storage::columns, Storage::packed})
    CHECK(parse_storage(name_of(storage)) == storage);
  CHECK_THROWS_AS(parse_storage("auto"), UsageError);
  CHECK_THROWS_AS(product_cost(Algorithm::automatic, {1, 1, 1}, {1, 1}, 0, 0, false), UsageError);
}
