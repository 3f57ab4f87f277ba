// SPDX-License-Identifier: BSD-3-Clause
// Slices on groups of ranks are compared with a dense block diagonal, their bytes with formulas, and
// divisions of ranks with all others.
#include "gridlops/ops/slice_groups.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/dist/column_arithmetic.hpp"
#include "gridlops/ops/fredholm.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "gridlops/solve/solver.hpp"
#include "local/products/packed_matrix.hpp"
#include "support/arrays.hpp"
#include "support/lapack.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

using Slices = std::vector<ProductShape>;
using Groups = std::vector<RankGroup>;

/// Element (i, j) of slice f.
template <Scalar T>
T slice_element(Index f, Index i, Index j) {
  return small_integer<T>(21, f * 64 + i, j);
}

/// A row of the slices, one after the other: the slice, and the row within it.
struct Place {
  Index slice = 0, row = 0;
};
std::vector<Place> places(const Slices& slices, bool of_data) {
  std::vector<Place> all;
  for (std::size_t f = 0; f < slices.size(); ++f)
    for (Index i = 0; i < (of_data ? slices[f].rows : slices[f].cols); ++i)
      all.push_back({static_cast<Index>(f), i});
  return all;
}

/// Rank (p, q) of a group has part q of row block p of the data, and part p of column block q of the models.
Range own_rows(Index total, Index outer_parts, Index outer, Index inner_parts, Index inner) {
  const Range block =
      Partition::balanced(total, static_cast<int>(outer_parts)).range(static_cast<int>(outer));
  const Range part =
      Partition::balanced(block.size, static_cast<int>(inner_parts)).range(static_cast<int>(inner));
  return {block.begin + part.begin, part.size};
}

/// For each row of a vector in groups, the row of the slices one after the other.
std::vector<Index> order_in_groups(const Slices& slices, const Groups& groups, bool of_data) {
  std::vector<Index> order;
  Index slice = 0, before = 0;
  const auto total = [&](Index f) { return of_data ? slices[at(f)].rows : slices[at(f)].cols; };
  for (const RankGroup& group : groups) {
    const Index P = group.shape.rows, Q = group.shape.cols;
    for (Index p = 0; p < P; ++p) {
      for (Index q = 0; q < Q; ++q) {
        Index first = before;
        for (Index f = slice; f < slice + group.slices; first += total(f++)) {
          const Range own = of_data ? own_rows(total(f), P, p, Q, q) : own_rows(total(f), Q, q, P, p);
          for (Index i = own.begin; i < own.end(); ++i) order.push_back(first + i);
        }
      }
    }
    for (Index k = 0; k < group.slices; ++k) before += total(slice++);
  }
  return order;
}

/// Divisions of this program's ranks for three slices.
std::vector<Groups> divisions(const Slices& slices) {
  const int ranks = world().size();
  std::vector<Groups> all{{{{1, ranks}, 3}},
                          {{{ranks, 1}, 3}},
                          {{near_square(ranks), 3}},
                          {{{1, 1}, 3}},
                          divide_ranks(slices, ranks)};
  if (ranks > 1) {
    all.push_back({{near_square(ranks - 1), 2}, {{1, 1}, 1}});
    all.push_back({{{1, 1}, 1}, {near_square(ranks - 1), 2}});
    all.push_back({{{1, 1}, 0}, {{ranks - 1, 1}, 3}});
  }
  if (ranks > 2)
    all.push_back(
        {{near_square((ranks + 2) / 3), 1}, {near_square((ranks + 1) / 3), 1}, {near_square(ranks / 3), 1}});
  return all;
}

std::string describe(const Groups& groups) {
  std::string text;
  for (const RankGroup& group : groups)
    text += (text.empty() ? "" : ", ") + std::to_string(group.slices) + " slices on " +
            std::to_string(group.shape.rows) + "x" + std::to_string(group.shape.cols);
  return text;
}

GridPtr all_ranks() {
  return std::make_shared<const ProcessGrid>(world(), near_square(world().size()), make_backend());
}

template <Scalar T, class Value>
std::vector<DistMatrix<T>> example_slices(const SliceGroups& groups, Value&& element) {
  std::vector<DistMatrix<T>> A = allocate_slices<T>(groups);
  for (std::size_t k = 0; k < A.size(); ++k)
    A[k].fill([&, f = groups.own_slices().begin + static_cast<Index>(k)](Index i, Index j) {
      return element(f, i, j);
    });
  return A;
}

template <Scalar T, class Value>
OperatorPtr<T> example(const SliceGroups& groups, Value&& element, const MatrixMultOptions& options = {}) {
  return grouped_slices<T>(groups, example_slices<T>(groups, element), options);
}

/// Checks Q = A P, U = Aᴴ R and V = Aᴴ Q, of integers, against separate products.
template <Scalar T>
void check_normal_product(const LinearOperator<T>& A) {
  const GridPtr& grid = A.domain().grid;
  const auto integers = [](Index i, Index j) { return small_integer<T>(3, i, j); };
  const Layout model = A.domain().layout(3), data = A.range().layout(3);
  const DistMatrix<T> P = filled(grid, model, integers), R = filled(grid, data, integers);
  DistMatrix<T> Q(grid, data), U(grid, model), V(grid, model), product(grid, data), adjoint(grid, model);
  for (DistMatrix<T>* result : {&Q, &U, &V}) result->fill([](Index, Index) { return quiet_nan<T>(); });
  A.normal_product(P, R, Q, U, V);
  A.apply(T(1), P, T(0), product);
  Q -= product;
  A.apply_adjoint(T(1), R, T(0), adjoint);
  U -= adjoint;
  A.apply_adjoint(T(1), product, T(0), adjoint);
  V -= adjoint;
  for (const DistMatrix<T>* difference : {&Q, &U, &V}) CHECK(frobenius_norm<T>(*difference) == 0);
}

template <Scalar T>
void check_products(const Slices& slices) {
  const std::vector<Place> rows = places(slices, true), cols = places(slices, false);
  Storage storage = Storage::packed;
  for (const Groups& division : divisions(slices)) {
    storage = storage == Storage::packed ? Storage::columns : Storage::packed;  // in turn
    INFO(describe(division) << ", stored as " << name_of(storage));
    const SliceGroups groups(all_ranks(), slices, division);
    const OperatorPtr<T> A = example<T>(groups, slice_element<T>, {.storage = storage});
    const std::vector<Index> row_of = order_in_groups(slices, division, true),
                             col_of = order_in_groups(slices, division, false);
    REQUIRE(A->rows() == static_cast<Index>(rows.size()));
    REQUIRE(A->cols() == static_cast<Index>(cols.size()));
    const auto element = [&](Index i, Index j) {
      const Place row = rows[at(row_of[at(i)])], col = cols[at(col_of[at(j)])];
      return row.slice == col.slice ? slice_element<T>(row.slice, row.row, col.row) : T(0);
    };
    check_elements<T>(*A, element, 0);
    check_normal_product(*A);
    std::vector<OperatorPtr<T>> of_slices;
    for (DistMatrix<T>& slice : example_slices<T>(groups, slice_element<T>))
      of_slices.push_back(matrix_mult(Algorithm::stationary_a, std::move(slice)));
    check_elements<T>(*grouped_slices<T>(groups, std::move(of_slices)), element, 0);
    CHECK(A->has_one_pass() ==
          (storage == Storage::packed && groups.grid()->backend()->memory_space() == MemorySpace::host));
  }
}

/// The elements that this rank should send and receive in a product.
struct Moved {
  Index sent = 0, received = 0;
};
Moved formula(const Slices& slices, const Groups& groups, int rank, Index nrhs, bool adjoint) {
  Moved moved;
  Index slice = 0;
  for (const RankGroup& group : groups) {
    const Index P = group.shape.rows, Q = group.shape.cols;
    for (Index f = slice; f < slice + group.slices; ++f) {
      if (rank < 0 || rank >= P * Q) continue;
      const Index p = rank / Q, q = rank % Q;
      const Index m = own_rows(slices[at(f)].rows, P, p, 1, 0).size,
                  n = own_rows(slices[at(f)].cols, Q, q, 1, 0).size;
      const Index own_m = own_rows(slices[at(f)].rows, P, p, Q, q).size,
                  own_n = own_rows(slices[at(f)].cols, Q, q, P, p).size;
      // One side is gathered, and partial sums of the other are scattered.
      moved.sent += nrhs * (adjoint ? own_m * (Q - 1) + n - own_n : own_n * (P - 1) + m - own_m);
      moved.received += nrhs * (adjoint ? m - own_m + own_n * (P - 1) : n - own_n + own_m * (Q - 1));
    }
    slice += group.slices;
    rank -= group.shape.size();
  }
  return moved;
}

/// The time of the slowest group.
double slowest(const Slices& slices, const Groups& groups, const MachineModel& machine) {
  const std::vector<double> seconds = group_seconds(slices, groups, machine);
  return seconds.empty() ? 0 : *std::max_element(seconds.begin(), seconds.end());
}

/// The least such time of all divisions of at most this many ranks, the first `begin` slices left out.
double least_seconds(const Slices& slices, std::size_t begin, int ranks, const MachineModel& machine) {
  if (begin == slices.size()) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t end = begin + 1; end <= slices.size(); ++end) {
    const Slices some(slices.begin() + static_cast<std::ptrdiff_t>(begin),
                      slices.begin() + static_cast<std::ptrdiff_t>(end));
    for (int size = 1; size <= ranks; ++size) {
      for (const GridShape shape : gridlops::grids_of(size)) {
        const double first = slowest(some, {{shape, static_cast<Index>(some.size())}}, machine);
        if (first < least)
          least = std::min(least, std::max(first, least_seconds(slices, end, ranks - size, machine)));
      }
    }
  }
  return least;
}

/// Only flops take time, one second each.
MachineModel flops_only() {
  MachineModel machine{.seconds_per_flop = {1, 1, 1, 1},
                       .seconds_per_read_byte = 0,
                       .seconds_per_copied_byte = 0,
                       .links = {}};
  machine.links.fill({.seconds_per_call = 0, .seconds_per_byte = 0});
  return machine;
}

int ranks_of(const Groups& groups) {
  return std::accumulate(groups.begin(), groups.end(), 0,
                         [](int sum, const RankGroup& group) { return sum + group.shape.size(); });
}

/// The slices of these tests: none is square, and none is cut into equal parts.
const Slices uneven{{13, 5, 2}, {4, 7, 2}, {9, 3, 2}};

}  // namespace

TEMPLATE_LIST_TEST_CASE("Slices on groups of ranks are a dense block diagonal", "[slice_groups]", Scalars) {
  check_products<TestType>(uneven);
}

TEST_CASE("Slices may be smaller than their groups, or empty", "[slice_groups]") {
  check_products<double>({{2, 1, 1}, {1, 3, 1}, {1, 1, 1}});
  check_products<std::complex<float>>({{3, 2, 1}, {0, 4, 1}, {5, 0, 1}});
}

TEST_CASE("Vectors whose slices lie one after the other are moved into groups", "[slice_groups]") {
  using T = std::complex<float>;
  for (const Groups& division : divisions(uneven)) {
    const SliceGroups groups(all_ranks(), uneven, division);
    for (const bool of_data : {false, true}) {
      const GroupedSpace& to = of_data ? groups.data() : groups.models();
      for (int variant = 0; variant < cut_variants; ++variant) {
        INFO(describe(division) << (of_data ? ", data" : ", models") << ", cut in variant " << variant);
        const Index rows = to.space.dimension();
        const Space from{groups.grid(), {Axis::all, cut_somehow(rows, world().size(), variant)}};
        const std::vector<Index> order = order_in_groups(uneven, division, of_data);
        REQUIRE(static_cast<Index>(order.size()) == rows);
        check_elements<T>(
            *into_groups<T>(to, from), [&](Index i, Index j) { return T(order[at(i)] == j ? 1 : 0); }, 0);
      }
    }
  }
}

TEST_CASE("A product sends what the formula says, slice by slice", "[slice_groups]") {
  using T = std::complex<float>;
  for (const Groups& division : divisions(uneven)) {
    const SliceGroups groups(all_ranks(), uneven, division);
    const OperatorPtr<T> A = example<T>(groups, slice_element<T>);
    for (const Index nrhs : {1, 3}) {
      DistMatrix<T> X(groups.grid(), A->domain().layout(nrhs)), Y(groups.grid(), A->range().layout(nrhs));
      X.fill(random_elements<T>(1));
      Y.fill(random_elements<T>(2));
      for (const bool adjoint : {false, true}) {
        INFO(describe(division) << ", " << nrhs << " columns" << (adjoint ? ", adjoint" : ""));
        const auto apply = [&] { adjoint ? A->apply_adjoint(T(1), Y, T(1), X) : A->apply(T(1), X, T(1), Y); };
        apply();  // takes the memory, on which the ranks agree
        const TrafficSince traffic(world());
        apply();
        const Moved expected = formula(uneven, division, world().rank(), nrhs, adjoint);
        const Index bytes = sizeof(T);
        CHECK(traffic.sent() == bytes * expected.sent);
        CHECK(traffic.received() == bytes * expected.received);
        // The cost model says the same.
        RankCost modelled;
        const Range own = groups.own_slices();
        for (Index f = own.begin; f < own.end(); ++f) {
          ProductShape shape = uneven[at(f)];
          shape.nrhs = nrhs;
          shape.type = scalar_type_of<T>;
          const ProcessGrid& grid = *groups.own_grid();
          const RankCost cost = product_cost(Algorithm::stationary_a, shape, grid.shape(), grid.my_row(),
                                             grid.my_col(), adjoint);
          modelled.bytes_sent += cost.bytes_sent;
          modelled.messages += cost.messages;
        }
        CHECK(traffic.sent() == modelled.bytes_sent);
        CHECK(traffic.calls() == modelled.messages);
      }
    }
  }
}

TEST_CASE("Least squares on groups of ranks have the dense solution, in either order", "[slice_groups]") {
  using T = std::complex<double>;
  const Slices slices{{13, 5, 2}, {8, 7, 2}, {9, 3, 2}};
  std::vector<KnownSpectrum<T>> spectra;
  for (const ProductShape& slice : slices)
    spectra.emplace_back(slice.rows, slice.cols, geometric(slice.cols, 3), spectra.size());
  const std::vector<Place> rows = places(slices, true), cols = places(slices, false);
  const auto element = [&](Index f, Index i, Index j) { return spectra[at(f)](i, j); };
  const Element<T> dense_element = [&](Index i, Index j) {
    const Place row = rows[at(i)], col = cols[at(j)];
    return row.slice == col.slice ? element(row.slice, row.row, col.row) : T(0);
  };
  const auto m = static_cast<Index>(rows.size()), n = static_cast<Index>(cols.size());
  const Element<T> b = random_elements<T>(17);
  std::array<std::vector<T>, 2> expected;
  for (const Index column : {0, 1})
    expected[at(column)] = lapack_solution<T>(m, n, dense_element, b, column, 0);
  SolveOptions options;
  options.max_iterations = 300;
  options.tolerance = 1e-12;
  for (const Groups& division : divisions(slices)) {
    INFO(describe(division));
    const SliceGroups groups(all_ranks(), slices, division);
    const GridPtr& grid = groups.grid();
    const OperatorPtr<T> A = example<T>(groups, element);
    const Space data{grid, Cut::balanced(Axis::all, m, *grid)},
        model{grid, Cut::balanced(Axis::all, n, *grid)};
    const OperatorPtr<T> to_data = into_groups<T>(groups.data(), data),
                         to_models = into_groups<T>(groups.models(), model);
    DistMatrix<T> B(grid, data.layout(2)), X(grid, model.layout(2)), grouped_B(grid, A->range().layout(2)),
        grouped_X(grid, A->domain().layout(2));
    B.fill(b);
    const auto value = [&](Index i, Index j) { return expected[at(j)][at(i)]; };
    to_data->apply(T(1), B, T(0), grouped_B);
    grouped_X.set_zero();
    const SolveReport report = cgls<T>(*A, grouped_B, grouped_X, options);
    to_models->apply_adjoint(T(1), grouped_X, T(0), X);
    // ‖x − x*‖ ≤ κ² · tolerance · ‖Aᴴb‖, where κ = 3, ‖A‖ = 1 and ‖b‖ < 10.
    CHECK(mismatches(X, value, 1e-9) == 0);
    for (const ColumnReport& column : report.columns) CHECK(column.reason == StopReason::converged);

    X.set_zero();
    cgls<T>(*product(adjoint(to_data), product(A, to_models)), B, X, options);
    CHECK(mismatches(X, value, 1e-9) == 0);
  }
}

TEST_CASE("Arrays of slices go through groups as through a Fredholm integral", "[slice_groups]") {
  using C = std::complex<double>;
  const Index nx = 4, ny = 3;
  const Slices slices(3, {nx, ny, 1, ScalarType::c128});
  for (const Groups& division : divisions(slices)) {
    INFO(describe(division));
    const SliceGroups groups(all_ranks(), slices, division);
    const GridPtr& grid = groups.grid();
    const Space kernel = array_space(grid, {3, ny, nx}, 0);
    DistMatrix<C> entries(grid, kernel.layout(1));
    entries.fill(
        [&](Index row, Index) { return slice_element<C>(row / (nx * ny), row % nx, row / nx % ny); });
    const OperatorPtr<C> A = grouped_slices<C>(groups, slices_of_kernel<C>(groups, kernel, entries));
    const OperatorPtr<C> F = fredholm<C>(kernel, std::move(entries));
    const OperatorPtr<C> G = product(adjoint(into_groups<C>(groups.data(), F->range())),
                                     product(A, into_groups<C>(groups.models(), F->domain())));
    const ConvolutionTimes times{6, 3, 3};
    const auto in_groups = multidimensional_convolution<double>(G, times),
               on_ranks = multidimensional_convolution<double>(F, times);
    DistMatrix<double> m(grid, in_groups->domain().layout(2)), d(grid, in_groups->range().layout(2)),
        expected(grid, on_ranks->range().layout(2));
    m.fill(random_elements<double>(5));
    in_groups->apply(1, m, 0, d);
    on_ranks->apply(1, m, 0, expected);
    const std::vector<double> whole = everywhere<double>(expected);
    CHECK(mismatches(
              d, [&](Index i, Index j) { return whole[at(i + j * expected.rows())]; }, 1e-12) == 0);
    CHECK(dot_test(*in_groups).passed);
  }
}

TEST_CASE("Groups pack their slices where most elements are multiplied faster that way", "[slice_groups]") {
  const GridPtr grid = all_ranks();
  const auto storage = [&](const Slices& slices) {
    return faster_storage(SliceGroups(grid, slices, {{{1, 1}, static_cast<Index>(slices.size())}}));
  };
  const auto one = [&](const ProductShape& shape) {
    return packed_is_faster(shape.type, shape.rows, shape.cols, shape.nrhs, kernel_choice())
               ? Storage::packed
               : Storage::columns;
  };
  const ProductShape large{300, 200, 4, ScalarType::c64}, small{13, 5, 4, ScalarType::c64};
  CHECK(storage({large}) == one(large));
  CHECK(storage({small, large, small}) == one(large));
  CHECK(storage(Slices(1000, small)) == Storage::columns);
  CHECK(storage({}) == Storage::columns);
}

TEST_CASE("No division of the ranks has a faster slowest group", "[slice_groups]") {
  MachineModel slow_links, fast_links;
  slow_links.links.fill({.seconds_per_call = 1e-4, .seconds_per_byte = 1e-8});
  fast_links.links.fill({.seconds_per_call = 1e-9, .seconds_per_byte = 1e-12});
  const std::vector<Slices> examples{uneven,
                                     Slices(3, {300, 200, 1, ScalarType::c64}),
                                     Slices(5, {2000, 1000, 1, ScalarType::c64}),
                                     {{900, 100, 4}, {30, 20, 4}, {200, 300, 4}, {500, 400, 4}},
                                     {{0, 7, 1}, {5000, 3, 1}, {3, 5000, 1}}};
  for (const Slices& slices : examples) {
    for (const int ranks : {1, 2, 4, 5, 7}) {
      for (const MachineModel& machine : {MachineModel{}, slow_links, fast_links, flops_only()}) {
        const Groups groups = divide_ranks(slices, ranks, machine);
        INFO(slices.size() << " slices on " << ranks << " ranks: " << describe(groups));
        CHECK(ranks_of(groups) <= ranks);
        const double least = least_seconds(slices, 0, ranks, machine);
        CHECK(slowest(slices, groups, machine) <= least * (1 + 1e-8));
        CHECK(slowest(slices, groups, machine) >= least * (1 - 1e-8));
      }
    }
  }
}

TEST_CASE("Ranks are divided by what slices cost", "[slice_groups]") {
  const MachineModel flops = flops_only();
  // A product and its adjoint take 2 · 2 m n r flops, of complex numbers four times as many.
  CHECK(group_seconds({{10, 6, 2}, {4, 4, 1, ScalarType::c64}}, {{{1, 1}, 1}, {{2, 2}, 1}}, flops) ==
        std::vector<double>{480, 64});
  // One slice takes as long as the two others.
  const Slices one_large{{20, 20, 1}, {20, 10, 1}, {20, 10, 1}};
  CHECK(slowest(one_large, divide_ranks(one_large, 2, flops), flops) == 1600);
  CHECK(slowest(one_large, divide_ranks(one_large, 4, flops), flops) == 800);
  // Where a message takes long, a rank has whole slices, and more of the small ones.
  MachineModel far = flops_only();
  far.links.fill({.seconds_per_call = 1e9, .seconds_per_byte = 0});
  CHECK(divide_ranks(one_large, 2, far) == Groups{{{1, 1}, 1}, {{1, 1}, 2}});
  CHECK(divide_ranks(one_large, 7, far) == Groups{{{1, 1}, 1}, {{1, 1}, 2}});
  CHECK(divide_ranks({}, 5).empty());
  CHECK(divide_ranks({{5, 5, 0}, {6, 6, 0}}, 5) == Groups{{{1, 1}, 2}});
  CHECK(contains(message_of<UsageError>([] { divide_ranks(uneven, 0); }), "among 0 ranks"));
}

TEST_CASE("Groups that do not fit are refused on all ranks", "[slice_groups]") {
  const GridPtr grid = all_ranks();
  const int ranks = world().size();
  const auto refused = [&](const Slices& slices, const Groups& groups) {
    return message_of<UsageError>([&] { SliceGroups(grid, slices, groups); });
  };
  CHECK(contains(refused(uneven, {{{1, ranks + 1}, 3}}), "ranks, but the grid has"));
  CHECK(contains(refused(uneven, {{{1, 1}, 2}}), "share 2 slices, but there are 3"));
  CHECK(contains(refused(uneven, {{{0, 1}, 3}}), "a group has ranks"));
  CHECK(contains(refused({{-1, 2}}, {{{1, 1}, 1}}), "cannot be -1 x 2"));

  const SliceGroups groups(grid, uneven, {{{1, 1}, 3}});
  const auto refused_matrices = [&](std::vector<DistMatrix<double>> A) {
    return message_of<ShapeError>([&] { grouped_slices<double>(groups, std::move(A)); });
  };
  // Only the first rank has slices, and passes too few matrices, or matrices of other shapes.
  std::vector<DistMatrix<double>> A = allocate_slices<double>(groups);
  if (!A.empty()) A.pop_back();
  CHECK(contains(refused_matrices(std::move(A)), "the rank passes 2"));
  A = allocate_slices<double>(groups);
  if (!A.empty()) std::swap(A[0], A[1]);
  CHECK(contains(refused_matrices(std::move(A)), "the matrix of slice 0 is"));
  const auto refused_operators = [&](std::vector<OperatorPtr<double>> slices) {
    return message_of<ShapeError>([&] { grouped_slices<double>(groups, std::move(slices)); });
  };
  std::vector<OperatorPtr<double>> operators;
  for (DistMatrix<double>& slice : allocate_slices<double>(groups))
    operators.push_back(matrix_mult(Algorithm::stationary_a, std::move(slice)));
  std::vector<OperatorPtr<double>> too_few = operators;
  if (!too_few.empty()) {
    too_few.pop_back();
    std::swap(operators[0], operators[1]);
  }
  CHECK(contains(refused_operators(std::move(too_few)), "the rank passes 2"));
  CHECK(contains(refused_operators(std::move(operators)), "the operator of slice 0 takes"));

  const auto refused_space = [&](const Space& from) {
    return message_of<ShapeError>([&] { into_groups<double>(groups.models(), from); });
  };
  CHECK(contains(refused_space({grid, Cut::balanced(Axis::all, 14, *grid)}), "one after the other"));
  CHECK(contains(refused_space({grid, Cut::uncut(15)}), "one after the other"));
  if (ranks > 1) CHECK(contains(refused_space(array_space(grid, {3, 5}, 1)), "one after the other"));

  const auto refused_kernel = [&](const std::vector<Index>& sizes, int cut) {
    const Space kernel = array_space(grid, sizes, cut);
    const DistMatrix<double> G(grid, kernel.layout(1));
    return message_of<ShapeError>([&] { slices_of_kernel<double>(groups, kernel, G); });
  };
  CHECK(contains(refused_kernel({2, 5, 13}, 0), "share 3 slices"));
  CHECK(contains(refused_kernel({3, 5, 13}, 0), "a slice of 4 x 7 is none"));
  if (ranks > 1) CHECK(contains(refused_kernel({3, 5, 13}, 1), "the slices only"));
}
