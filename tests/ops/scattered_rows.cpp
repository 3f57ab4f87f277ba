// SPDX-License-Identifier: BSD-3-Clause
// Rows that ranks have in any number and order.
#include "gridlops/ops/scattered_rows.hpp"

#include <algorithm>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "support/agreed_failures.hpp"
#include "support/arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// The rows of every rank of a grid, in its order.
using Rows = std::vector<std::vector<Index>>;

/// Deals rows out in one of several ways. On every rank they descend.
Rows deal_rows(Index rows, int ranks, int way) {
  Rows dealt(at(ranks));
  for (Index row = rows - 1; row >= 0; --row) {
    const Index of_rank[] = {row % ranks,                        // one by one
                             ranks - 1,                          // all on the last rank
                             row * row % 7 * ranks / 7,          // unevenly, perhaps none on some
                             (rows - 1 - row) / 3 * 5 % ranks};  // by three
    dealt[at(of_rank[way])].push_back(row);
  }
  if (way == 3)  // runs that ascend
    for (std::vector<Index>& of_rank : dealt) std::reverse(of_rank.begin(), of_rank.end());
  return dealt;
}

template <Scalar T>
void check_permutation(const Space& space, const Rows& dealt) {
  const ProcessGrid& grid = *space.grid;
  const auto P =
      scattered_rows<T>(space, grid.is_member() ? dealt[at(grid.comm().rank())] : std::vector<Index>());
  CHECK(P->rows() == space.dimension());
  CHECK(P->cols() == space.dimension());
  CHECK(P->range() == space);
  if (!grid.is_member()) return;
  std::vector<Index> numbers(at(space.dimension())), kept(1);
  for (int row = 0; row < grid.rows(); ++row) {
    for (int col = 0; col < grid.cols(); ++col) {
      const std::vector<Index>& rows = dealt[at(row * grid.cols() + col)];
      const int part = grid.part_at(space.rows.axis, row, col);
      REQUIRE(P->domain().rows.partition.size(part) == static_cast<Index>(rows.size()));
      std::copy(rows.begin(), rows.end(), numbers.begin() + P->domain().rows.partition.begin(part));
      if (row * grid.cols() + col != grid.comm().rank()) continue;
      for (const Index number : rows) kept[0] += space.rows.partition.owner_of(number) == part ? 1 : 0;
    }
  }
  check_elements<T>(
      *P, [&](Index i, Index j) { return T(i == numbers[at(j)] ? 1 : 0); }, 0);

  const Index nrhs = 3;
  DistMatrix<T> X(space.grid, P->domain().layout(nrhs)), Y(space.grid, space.layout(nrhs));
  X.set_zero();
  P->apply(T(1), X, T(0), Y);
  const TrafficSince traffic(grid.comm());
  P->apply(T(1), X, T(0), Y);
  CHECK(traffic.sent() == (X.local().rows - kept[0]) * nrhs * Index{sizeof(T)});
  CHECK(traffic.received() == (Y.local().rows - kept[0]) * nrhs * Index{sizeof(T)});
}

}  // namespace

TEMPLATE_TEST_CASE("Scattered rows come in order, and back", "", float, double, std::complex<float>,
                   std::complex<double>) {
  int variant = 0;
  for (const GridPtr& grid : all_grids()) {
    for (const Axis axis : {Axis::all, Axis::all_transposed}) {
      for (const Index rows : {0, 1, 5, 23}) {
        const int ways = rows < 5 ? 1 : 4;
        for (int way = 0; way < ways; ++way) {
          const Partition cut = cut_somehow(rows, grid->parts(axis), variant++ % 3);
          CAPTURE(describe(*grid), rows, way);
          check_permutation<TestType>({grid, {axis, cut}}, deal_rows(rows, grid->shape().size(), way));
        }
      }
    }
  }
}

TEST_CASE("Scattered rows keep numbers for each run of rows") {
  const GridPtr grid = grids_of({{1, 1}}, [] { return make_backend(); }).front();
  if (!grid->is_member()) return;
  const Space space = array_space(grid, {23}, 0);
  const auto kept = [&](Rows dealt) {
    return scattered_rows<double>(space, dealt[0])->kept_bytes(Partition::balanced(3, 1));
  };
  const Rows descending = deal_rows(23, 1, 0), ascending{{descending[0].rbegin(), descending[0].rend()}};
  // Rows travel by their numbers: those in order are always one run here, the others one run or 23.
  CHECK(kept(ascending) > 0);
  CHECK(2 * kept(descending) == (1 + 23) * kept(ascending));
}

TEST_CASE("All ranks refuse rows that are missing, given twice, or none") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    const Index m = 11;
    const int ranks = grid->shape().size(), me = grid->comm().rank(), last = ranks - 1;
    const Space space = array_space(grid, {m}, 0);
    const auto owner = [&](Index row) { return space.rows.partition.owner_of(row); };
    const auto attempt_with = [&](const std::function<void(Rows&)>& spoil) {
      Rows dealt = deal_rows(m, ranks, 0);
      spoil(dealt);
      scattered_rows<double>(space, dealt[at(me)]);
    };
    const auto home = [&](Index row) { return at(row % ranks); };
    check_agreed<UsageError>(*grid, owner(4),
                             "scattered_rows: row 4 is on no rank; each row must be on one rank, once",
                             [&] { attempt_with([&](Rows& rows) { std::erase(rows[home(4)], 4); }); });
    const auto [first, second] = std::minmax(4 % ranks, last);
    check_agreed<UsageError>(*grid, owner(4),
                             "scattered_rows: row 4 is on rank " + std::to_string(first) + " and on rank " +
                                 std::to_string(second) + "; each row must be on one rank, once",
                             [&] { attempt_with([&](Rows& rows) { rows[at(last)].push_back(4); }); });
    for (const Index wrong : {Index{-1}, m}) {
      check_agreed<UsageError>(
          *grid, last,
          "scattered_rows: row " + std::to_string(deal_rows(m, ranks, 0)[at(last)].size()) +
              " of the block is to be row " + std::to_string(wrong) + ", but rows are from 0 to 10",
          [&] { attempt_with([&](Rows& rows) { rows[at(last)].push_back(wrong); }); });
    }
    for (const Axis axis : {Axis::grid_rows, Axis::grid_cols, Axis::uncut}) {
      const Space copied = array_space(grid, {m}, 0, axis);
      CHECK_THROWS_AS(scattered_rows<double>(copied, {}), ShapeError);
    }
    // Nothing is lost.
    check_permutation<double>(space, deal_rows(m, ranks, 2));
  }
}

TEST_CASE("All ranks refuse rows that one rank cuts along another axis") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member() || grid->shape().size() == 1) continue;
    const bool is_last = grid->comm().rank() == grid->shape().size() - 1;
    for (const Axis other : {Axis::grid_rows, Axis::grid_cols, Axis::uncut, Axis::all_transposed}) {
      const Space space = array_space(grid, {11}, 0, is_last ? other : Axis::all);
      const Ending mine = ending_of([&] { scattered_rows<double>(space, {}); });
      INFO("it ended with: " << mine.text);
      CHECK(all_ended_alike(*grid, mine));
      CHECK((mine.type != nullptr && *mine.type == typeid(UsageError)));
      CHECK(mine.text.starts_with("scattered_rows: the ranks disagree. the rows in order: "));
    }
  }
}
