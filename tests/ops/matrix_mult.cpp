// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/matrix_mult.hpp"

#include <numeric>

#include "gridlops/base/error.hpp"
#include "gridlops/dist/redistribute.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "support/agreed_failures.hpp"
#include "support/catch.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Shape {
  Index rows, cols;
};

/// How a product is set up, apart from its numbers.
struct Setting {
  Algorithm algorithm;
  MatrixMultOptions options = {};
  int variant = 0;    // in which A, X and Y are cut
  Index padding = 0;  // between the columns of all three
};

std::string text_of(const Setting& setting) {
  const auto [panel, lookahead, column_stable, storage] = setting.options;
  return std::string(name_of(setting.algorithm)) + (storage == Storage::packed ? ", A packed" : "") +
         (column_stable ? ", column-stable" : "") + ", panel " + std::to_string(panel) + ", lookahead " +
         std::to_string(lookahead) + ", cut in variant " + std::to_string(setting.variant) + ", padding " +
         std::to_string(setting.padding);
}

/// A, X and Y of integers, with A X and Aᴴ Y.
template <Scalar T>
struct Problem {
  Problem(Shape shape, Index nrhs, std::uint64_t seed = 1)
      : A(integers<T>(seed, shape.rows, shape.cols)),
        X(integers<T>(2, shape.cols, nrhs)),
        Y(integers<T>(3, shape.rows, nrhs)),
        AX(multiplied(Op::none, A, X)),
        AhY(multiplied(Op::adjoint, A, Y)) {}
  Whole<T> A, X, Y, AX, AhY;
};

/// A where the algorithm wants it, cut as the setting says.
template <Scalar T>
EmbeddedMatrix<T> place_matrix(const GridPtr& grid, const Setting& setting, const Whole<T>& A) {
  Layout layout = matrix_layout(setting.algorithm, *grid, A.rows, A.cols);
  layout = layout_along(*grid, layout.rows.axis, layout.cols.axis, A.rows, A.cols, setting.variant);
  return EmbeddedMatrix<T>(grid, layout, setting.padding, A);
}

template <Scalar T>
using Coefficients = std::vector<std::pair<T, T>>;

/// Pairs of α and β: (1, 0), (2, −1), (−1, 1), and one that is complex for complex T.
template <Scalar T>
Coefficients<T> all_coefficients() {
  return {{T(1), T(0)}, {T(2), T(-1)}, {T(-1), T(1)}, {number<T>(1, 2), number<T>(3, -1)}};
}

/// Checks out ← α op(A) in + β out, with a NaN wherever nothing should be read.
template <Scalar T>
void check_application(const LinearOperator<T>& op, bool forward, const Whole<T>& in, const Whole<T>& product,
                       const Whole<T>& old, const Setting& setting, T alpha, T beta) {
  const Space& from = forward ? op.domain() : op.range();
  const Space& to = forward ? op.range() : op.domain();
  const Partition columns = cut_somehow(in.cols, from.grid->parts(from.columns), setting.variant);
  EmbeddedMatrix<T> X(from.grid, from.layout(columns), setting.padding, in);
  EmbeddedMatrix<T> Y(to.grid, to.layout(columns), setting.padding * 2,
                      [&](Index i, Index j) { return beta == T(0) ? quiet_nan<T>() : old(i, j); });
  DistMatrix<T> out = Y.matrix();
  forward ? op.apply(alpha, X.matrix(), beta, out) : op.apply_adjoint(alpha, X.matrix(), beta, out);
  const auto expected = [&](Index i, Index j) {
    return beta == T(0) ? alpha * product(i, j) : alpha * product(i, j) + beta * old(i, j);
  };
  CAPTURE(forward, alpha, beta);
  CHECK(mismatches(out, expected) == 0);
  CHECK(mismatches(X.matrix(), in) == 0);
  CHECK(X.surroundings_untouched());
  CHECK(Y.surroundings_untouched());
}

template <Scalar T>
void check_products(const GridPtr& grid, const Problem<T>& problem, const Setting& setting,
                    const Coefficients<T>& coefficients) {
  INFO(describe(*grid) << ": " << text_of(setting) << ", A " << problem.A.rows << " x " << problem.A.cols
                       << ", " << problem.X.cols << " columns");
  EmbeddedMatrix<T> A = place_matrix(grid, setting, problem.A);
  const OperatorPtr<T> op = matrix_mult(setting.algorithm, A.matrix(), setting.options);
  CHECK((op->rows() == problem.A.rows && op->cols() == problem.A.cols));
  for (const auto& coefficient : coefficients) {
    const T alpha = coefficient.first, beta = coefficient.second;
    check_application(*op, true, problem.X, problem.AX, problem.Y, setting, alpha, beta);
    check_application(*op, false, problem.Y, problem.AhY, problem.X, setting, alpha, beta);
  }
  CHECK(mismatches(A.matrix(), problem.A) == 0);
  CHECK(A.surroundings_untouched());
}

/// The settings of every algorithm with those of these options that it takes, in these variants.
std::vector<Setting> settings(const std::vector<MatrixMultOptions>& options, const std::vector<int>& variants,
                              Index padding) {
  std::vector<Setting> all;
  for (const Algorithm algorithm : all_algorithms)
    for (const MatrixMultOptions& option : options)
      for (const int variant : variants)
        if (option.storage == Storage::columns || may_be_packed(algorithm))
          all.push_back({algorithm, option, variant, padding});
  return all;
}

constexpr std::array shapes{Shape{0, 0},  Shape{0, 5},  Shape{5, 0},  Shape{1, 1},   Shape{1, 7},
                            Shape{7, 1},  Shape{2, 3},  Shape{5, 4},  Shape{12, 12}, Shape{13, 11},
                            Shape{41, 3}, Shape{3, 41}, Shape{29, 31}};

}  // namespace

TEMPLATE_LIST_TEST_CASE("Products of any shape are exact on any grid", "[matrix_mult]", Scalars) {
  using T = TestType;
  const std::vector<GridPtr> grids = all_grids();
  for (const Shape shape : shapes) {
    for (const Index nrhs : {0, 1, 7}) {
      const Problem<T> problem(shape, nrhs);
      for (const GridPtr& grid : grids)
        for (const Setting& setting : settings({{},
                                                {.column_stable = true},
                                                {.storage = Storage::packed},
                                                {.column_stable = true, .storage = Storage::packed}},
                                               {0}, 0))
          check_products(grid, problem, setting, {{T(1), T(0)}, {number<T>(1, 2), number<T>(3, -1)}});
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Products scale, add, and do not read what they overwrite", "[matrix_mult]",
                        Scalars) {
  using T = TestType;
  const Problem<T> problem({13, 11}, 5);
  for (const GridPtr& grid : all_grids())
    for (const Setting& setting : settings({{.panel = 3}}, {0}, 1))
      check_products(grid, problem, setting, all_coefficients<T>());
}

TEMPLATE_LIST_TEST_CASE("The width of panels and the depth of the lookahead change nothing", "[matrix_mult]",
                        Scalars) {
  using T = TestType;
  const Problem<T> problem({9, 10}, 6);
  std::vector<MatrixMultOptions> options;
  for (const Index panel : {1, 2, 5})
    for (const int lookahead : {1, 2, 5}) options.push_back({.panel = panel, .lookahead = lookahead});
  for (const GridPtr& grid : all_grids())
    for (const Setting& setting : settings(options, {0}, 0))
      check_products(grid, problem, setting, {{T(2), T(-1)}});
}

TEMPLATE_LIST_TEST_CASE("Operands may be cut anywhere and be views with gaps", "[matrix_mult]", Scalars) {
  using T = TestType;
  for (const Index nrhs : {1, 8}) {
    const Problem<T> problem({11, 13}, nrhs);
    for (const GridPtr& grid : all_grids())
      for (const Setting& setting : settings({{.panel = 4}, {.column_stable = true}}, {1, 2, 3, 4}, 2))
        check_products(grid, problem, setting, {{T(1), T(0)}, {T(2), T(-1)}});
  }
}

TEST_CASE("Messages too large to be sent before they are received arrive whole", "[matrix_mult]") {
  const Problem<double> problem({260, 310}, 65);
  for (const GridPtr& grid : all_grids())
    for (const Setting& setting : settings({{.panel = 48, .lookahead = 3}}, {0, 4}, 0))
      check_products(grid, problem, setting, {{1.0, 0.0}, {2.0, -1.0}});
}

TEMPLATE_LIST_TEST_CASE(
    "Products of every shape, cut, panel, lookahead and coefficient are exact on integers",
    "[matrix_mult][.full]", Scalars) {
  using T = TestType;
  const std::vector<GridPtr> grids = all_grids();
  const std::vector<MatrixMultOptions> options{
      {}, {.panel = 1, .lookahead = 1}, {.panel = 2, .lookahead = 5}, {.panel = 5, .column_stable = true}};
  for (const Shape shape : shapes) {
    for (const Index nrhs : {0, 1, 7, 33}) {
      const Problem<T> problem(shape, nrhs);
      for (const GridPtr& grid : grids)
        for (const Setting& setting : settings(options, {0, 1, 2, 4}, 1))
          check_products(grid, problem, setting, all_coefficients<T>());
    }
  }
}

TEMPLATE_LIST_TEST_CASE("An operator may be applied to fewer and more columns in turn", "[matrix_mult]",
                        Scalars) {
  using T = TestType;
  std::vector<Problem<T>> problems;
  for (const Index nrhs : {3, 9, 1, 0, 4, 17}) problems.emplace_back(Shape{10, 14}, nrhs);
  for (const GridPtr& grid : all_grids()) {
    for (const Setting& setting : settings({{.panel = 4}, {.column_stable = true}}, {0}, 0)) {
      INFO(describe(*grid) << ": " << text_of(setting));
      EmbeddedMatrix<T> A = place_matrix(grid, setting, problems.front().A);
      const OperatorPtr<T> op = matrix_mult(setting.algorithm, A.matrix(), setting.options);
      for (const Problem<T>& problem : problems) {
        check_application(*op, false, problem.Y, problem.AhY, problem.X, setting, T(1), T(1));
        check_application(*op, true, problem.X, problem.AX, problem.Y, setting, T(1), T(1));
      }
    }
  }
}

namespace {

/// Checks Q = A X, U = Aᴴ Y and V = Aᴴ Q, of integers, in one pass where the operator has that.
template <Scalar T>
void check_normal_product(const LinearOperator<T>& op, const Problem<T>& problem, const Whole<T>& AhAX) {
  const GridPtr& grid = op.domain().grid;
  const Index nrhs = problem.X.cols;
  const DistMatrix<T> P = filled(grid, op.domain().layout(nrhs), problem.X),
                      R = filled(grid, op.range().layout(nrhs), problem.Y);
  DistMatrix<T> Q(grid, R.layout()), U(grid, P.layout()), V(grid, P.layout());
  op.normal_product(P, R, Q, U, V);
  CHECK(mismatches(Q, problem.AX) == 0);
  CHECK(mismatches(U, problem.AhY) == 0);
  CHECK(mismatches(V, AhAX) == 0);
}

}  // namespace

// Small blocks are copied to memory that ranks share, large ones may lie there.
TEMPLATE_LIST_TEST_CASE("A matrix that its owner has changed counts as it is, once that is said",
                        "[matrix_mult]", Scalars) {
  using T = TestType;
  for (const Shape shape : {Shape{10, 14}, Shape{5, 0}, Shape{150, 260}}) {
    // A as it is at first, and as its owner changes it.
    std::vector<Problem<T>> problems;
    std::vector<Whole<T>> AhAX;
    for (const std::uint64_t seed : {1U, 11U, 12U}) {
      const Problem<T>& added = problems.emplace_back(shape, 3, seed);
      AhAX.push_back(multiplied(Op::adjoint, added.A, added.AX));
    }
    for (const GridPtr& grid : compact_grids()) {
      for (const Setting& setting :
           settings({{.panel = 4 + shape.cols / 3}, {.column_stable = true}, {.storage = Storage::packed}},
                    {0}, 1)) {
        INFO(describe(*grid) << ": " << text_of(setting) << ", A " << shape.rows << " x " << shape.cols);
        EmbeddedMatrix<T> A = place_matrix(grid, setting, problems.front().A);
        const OperatorPtr<T> op = matrix_mult(setting.algorithm, A.matrix(), setting.options);
        const OperatorPtr<T> turned = adjoint(op);
        for (std::size_t k = 0; k < problems.size(); ++k) {
          const Problem<T>& problem = problems[k];
          CAPTURE(k);
          if (k > 0) {
            A.matrix().fill(problem.A);
            matrix_changed(*op);
          }
          check_application(*op, true, problem.X, problem.AX, problem.Y, setting, T(1), T(0));
          check_application(*op, false, problem.Y, problem.AhY, problem.X, setting, T(1), T(0));
          check_application(*turned, true, problem.Y, problem.AhY, problem.X, setting, T(1), T(0));
          check_normal_product(*op, problem, AhAX[k]);
        }
      }
    }
  }
}

TEST_CASE("Only a matrix that is the caller's can have changed, and all ranks hear so", "[matrix_mult]") {
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      DistMatrix<double> A(grid, matrix_layout(algorithm, *grid, 6, 5));
      A.set_zero();
      const OperatorPtr<double> op = matrix_mult(algorithm, std::move(A));
      const Ending owned = ending_of([&] { matrix_changed(*op); });
      const Ending unknown = ending_of([&] { matrix_changed(*adjoint(op)); });
      INFO(describe(*grid) << ": " << name_of(algorithm));
      CHECK(contains(unknown.text, "the one that matrix_mult() returned"));
      if (!grid->is_member()) continue;
      CHECK(all_ended_alike(*grid, owned));
      CHECK(contains(owned.text, "was moved into its operator"));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Products are rounded as sums of their length are", "[matrix_mult]", Scalars) {
  using T = TestType;
  const Whole<T> A = fractions<T>(1, 70, 90), X = fractions<T>(2, 90, 5), Y = fractions<T>(3, 70, 5);
  const auto check = [&](const LinearOperator<T>& op, Op which, const Whole<T>& in) {
    const bool forward = which == Op::none;
    const Whole<T> exact = multiplied(which, A, in);
    DistMatrix<T> from(op.domain().grid, (forward ? op.domain() : op.range()).layout(5));
    DistMatrix<T> to(op.domain().grid, (forward ? op.range() : op.domain()).layout(5));
    from.fill(in);
    forward ? op.apply(T(1), from, T(0), to) : op.apply_adjoint(T(1), from, T(0), to);
    // A sum of k products, each at most √2·√2 in size, makes k rounding errors of at most ε/2 times a partial
    // sum of size about √k. They have random signs, so that their sum is about ε/2·k. The 8 is for outliers.
    const double tolerance = 8 * 0.5 * static_cast<double>(in.rows) * std::numeric_limits<Real<T>>::epsilon();
    CHECK(mismatches(to, exact, tolerance) == 0);
  };
  for (const GridPtr& grid : all_grids()) {
    for (const Setting& setting : settings({{}, {.column_stable = true}}, {0}, 0)) {
      INFO(describe(*grid) << ": " << text_of(setting));
      EmbeddedMatrix<T> memory = place_matrix(grid, setting, A);
      const OperatorPtr<T> op = matrix_mult(setting.algorithm, memory.matrix(), setting.options);
      check(*op, Op::none, X);
      check(*op, Op::adjoint, Y);
    }
  }
}

namespace {

/// Multiplies column sequence[k] of `all` as column k. The result is on rank 0; other ranks have one without
/// rows.
template <Scalar T>
Whole<T> multiply_columns(const LinearOperator<T>& op, bool forward, const Whole<T>& all,
                          const std::vector<Index>& sequence, int variant, Index padding) {
  const Space& from = forward ? op.domain() : op.range();
  const Space& to = forward ? op.range() : op.domain();
  const auto count = static_cast<Index>(sequence.size());
  const Partition columns = cut_somehow(count, from.grid->parts(from.columns), variant);
  const auto chosen = [&](Index i, Index j) { return all(i, sequence[static_cast<std::size_t>(j)]); };
  EmbeddedMatrix<T> X(from.grid, from.layout(columns), padding, chosen);
  EmbeddedMatrix<T> Y(to.grid, to.layout(columns), padding, [](Index, Index) { return T(1); });
  DistMatrix<T> out = Y.matrix();
  const T alpha = number<T>(0.7, 0.3);
  forward ? op.apply(alpha, X.matrix(), T(1), out) : op.apply_adjoint(alpha, X.matrix(), T(1), out);
  std::vector<T> whole = gather(out, 0);
  return {whole.empty() ? 0 : to.dimension(), count, std::move(whole)};
}

/// Checks that products of fewer columns, in another order, have the bits of one product.
template <Scalar T>
void check_column_stable(const GridPtr& grid, const Setting& setting, Shape shape) {
  constexpr Index count = 21;
  INFO(describe(*grid) << ": " << text_of(setting) << ", A " << shape.rows << " x " << shape.cols);
  EmbeddedMatrix<T> A = place_matrix(grid, setting, fractions<T>(1, shape.rows, shape.cols));
  const OperatorPtr<T> op = matrix_mult(setting.algorithm, A.matrix(), setting.options);
  std::vector<Index> everything(count);
  std::iota(everything.begin(), everything.end(), 0);
  for (const bool forward : {true, false}) {
    const Whole<T> in = fractions<T>(2, forward ? shape.cols : shape.rows, count);
    const Whole<T> together = multiply_columns(*op, forward, in, everything, 0, 0);
    int variant = 0;
    for (const std::vector<Index>& sequence : std::vector<std::vector<Index>>{
             {5}, {20}, {3, 2}, {17, 0, 9}, {1, 2, 3, 4, 5, 6, 7, 20}, {20, 19, 18, 7, 6, 5, 4, 3, 0}}) {
      const Whole<T> apart = multiply_columns(*op, forward, in, sequence, variant++, setting.padding);
      Index different = 0;
      for (std::size_t k = 0; k < sequence.size(); ++k)
        for (Index i = 0; i < apart.rows; ++i)
          different += apart(i, static_cast<Index>(k)) != together(i, sequence[k]);
      CAPTURE(forward, sequence);
      CHECK(different == 0);
    }
  }
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Column-stable products do not depend on a column's company", "[matrix_mult]",
                        Scalars) {
  for (const GridPtr& grid : all_grids())
    for (const Setting& setting : settings({{.panel = 16, .column_stable = true}}, {0}, 0))
      for (const Shape shape : {Shape{37, 53}, {3, 50}, {64, 1}})
        check_column_stable<TestType>(grid, setting, shape);
}

// From 64 KiB on Open MPI adds in another order.
TEST_CASE("Column-stable sums do not depend on the size of messages", "[matrix_mult]") {
  for (const GridPtr& grid : all_grids())
    for (const Setting& setting : settings({{.panel = 512, .column_stable = true}}, {0}, 0))
      for (const Shape shape : {Shape{24, 2000}, {2000, 24}})
        check_column_stable<double>(grid, setting, shape);
}

TEMPLATE_LIST_TEST_CASE("Column-stable products of more shapes do not depend on a column's company",
                        "[matrix_mult][.full]", Scalars) {
  for (const GridPtr& grid : all_grids())
    for (const Index padding : {0, 1})
      for (const Setting& setting : settings({{.panel = 16, .column_stable = true}}, {0}, padding))
        for (const Shape shape : {Shape{8, 8}, {17, 200}, {200, 17}, {300, 500}})
          check_column_stable<TestType>(grid, setting, shape);
}

TEMPLATE_LIST_TEST_CASE("Products allocate the first time only", "[matrix_mult]", Scalars) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for (const Setting& setting : settings({{.panel = 3}, {.panel = 3, .column_stable = true}}, {0, 3}, 1)) {
      INFO(describe(*grid) << ": " << text_of(setting));
      EmbeddedMatrix<T> A = place_matrix(grid, setting, integers<T>(1, 13, 11));
      const OperatorPtr<T> op = matrix_mult(setting.algorithm, A.matrix(), setting.options);
      const Space& domain = op->domain();
      std::vector<Index> allocations;
      for (const Index nrhs : {12, 12, 7, 1, 0, 12}) {
        const Partition columns = Partition::balanced(nrhs, grid->parts(domain.columns));
        EmbeddedMatrix<T> X(grid, domain.layout(columns), 1, integers<T>(2, 11, nrhs));
        EmbeddedMatrix<T> Y(grid, op->range().layout(columns), 1, integers<T>(3, 13, nrhs));
        DistMatrix<T> model = X.matrix(), data = Y.matrix();
        op->apply(T(1), model, T(2), data);
        op->apply_adjoint(T(1), data, T(2), model);
        allocations.push_back(grid->backend()->allocations());
      }
      CHECK(allocations == std::vector<Index>(allocations.size(), allocations.front()));
    }
  }
}

TEST_CASE("Matrices and options that do not fit are refused on all ranks, without a message",
          "[matrix_mult]") {
  for (const GridPtr& grid : all_grids()) {
    const TrafficSince traffic(world());
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      const Layout needed = matrix_layout(algorithm, *grid, 4, 6);
      for (const Axis rows : all_axes) {
        for (const Axis cols : all_axes) {
          if (!legal(rows, cols) || (rows == needed.rows.axis && cols == needed.cols.axis)) continue;
          DistMatrix<float> A(grid, layout_along(*grid, rows, cols, 4, 6));
          CHECK_THROWS_AS(matrix_mult(algorithm, std::move(A)), ShapeError);
        }
      }
      const auto with = [&](const MatrixMultOptions& options) {
        return matrix_mult(algorithm, DistMatrix<float>(grid, needed), options);
      };
      CHECK_THROWS_AS(with({.panel = -1}), UsageError);
      CHECK_THROWS_AS(with({.lookahead = 0}), UsageError);
      if (!may_be_packed(algorithm)) CHECK_THROWS_AS(with({.storage = Storage::packed}), UsageError);
    }
    CHECK_THROWS_AS(matrix_layout(Algorithm::automatic, *grid, 4, 6), UsageError);
    CHECK_THROWS_AS(matrix_mult(Algorithm::automatic, DistMatrix<float>(grid, replicated(4, 6))), UsageError);
    CHECK(traffic.nothing());
  }
}

TEST_CASE("Models and data that do not fit are refused on all ranks, without a message", "[matrix_mult]") {
  const std::vector<GridPtr> grids = all_grids();
  for (const GridPtr& grid : grids) {
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      DistMatrix<double> A(grid, matrix_layout(algorithm, *grid, 6, 4));
      const auto op = matrix_mult(algorithm, std::move(A), MatrixMultOptions{});
      const TrafficSince traffic(world());
      const auto refused = [&](const GridPtr& place, const Layout& model, const Layout& data) {
        DistMatrix<double> X(place, model), Y(place, data);
        CHECK_THROWS_AS(op->apply(1.0, X, 0.0, Y), ShapeError);
        CHECK_THROWS_AS(op->apply_adjoint(1.0, Y, 0.0, X), ShapeError);
      };
      const Space &domain = op->domain(), &range = op->range();
      const Layout X = domain.layout(3), Y = range.layout(3);
      refused(grid, domain.layout(2), Y);
      refused(grid, X, range.layout(0));
      Layout taller = X, shorter = Y;
      taller.rows.partition = Partition::balanced(5, grid->parts(X.rows.axis));
      shorter.rows.partition = Partition::balanced(5, grid->parts(Y.rows.axis));
      refused(grid, taller, Y);
      refused(grid, X, shorter);
      for (const Axis rows : all_axes) {
        if (rows != X.rows.axis && legal(rows, X.cols.axis))
          refused(grid, {Cut::balanced(rows, 4, *grid), X.cols}, Y);
        if (rows != Y.rows.axis && legal(rows, Y.cols.axis))
          refused(grid, X, {Cut::balanced(rows, 6, *grid), Y.cols});
      }
      // The columns are cut at different places, where they are cut.
      const int parts = grid->parts(domain.columns);
      if (parts > 1) {
        refused(grid, X, range.layout(cut_somehow(3, parts, 2)));
        refused(grid, domain.layout(cut_somehow(3, parts, 1)), Y);
      }
      if (grid != grids.back() && grids.back()->shape() == grid->shape()) refused(grids.back(), X, Y);
      CHECK(traffic.nothing());
    }
  }
}
