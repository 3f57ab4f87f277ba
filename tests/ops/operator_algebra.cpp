// SPDX-License-Identifier: BSD-3-Clause
// Compares every combination of operators with the dense blocks that it stands for.
#include "gridlops/ops/operator_algebra.hpp"

#include "base/numbers.hpp"
#include "gridlops/base/error.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/fourier.hpp"
#include "gridlops/ops/matrix_mult.hpp"
#include "support/agreed_failures.hpp"
#include "support/catch.hpp"
#include "support/counted_reads.hpp"
#include "support/test_data.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

/// The expected blocks of an operator. blocks[k][l] maps the l-th member of its domain to the k-th of its
/// range. An operator that is no stack is one block.
template <Scalar T>
struct Blocks {
  std::vector<Space> ranges, domains;
  std::vector<std::vector<Whole<T>>> blocks;
};

template <Scalar T>
Whole<T> computed(Index rows, Index cols, const std::function<T(Index, Index)>& value) {
  return {rows, cols, dense<T>(rows, cols, value)};
}
template <Scalar T>
Whole<T> zeros(Index rows, Index cols) {
  return computed<T>(rows, cols, [](Index, Index) { return T(0); });
}
template <Scalar T>
Whole<T> eye(Index n, T factor = T(1)) {
  return computed<T>(n, n, [=](Index i, Index j) { return i == j ? factor : T(0); });
}
template <Scalar T>
Whole<T> adjoint_of(const Whole<T>& A) {
  return computed<T>(A.cols, A.rows, [&](Index i, Index j) { return conjugate(A(j, i)); });
}
template <Scalar T>
Whole<T> scaled(T factor, const Whole<T>& A) {
  return computed<T>(A.rows, A.cols, [&](Index i, Index j) { return factor * A(i, j); });
}
template <Scalar T>
Whole<T> added(const Whole<T>& A, const Whole<T>& B) {
  return computed<T>(A.rows, A.cols, [&](Index i, Index j) { return A(i, j) + B(i, j); });
}

/// The integers of member k of a stacked space.
template <Scalar T>
Whole<T> member_values(std::uint64_t seed, std::size_t k, const Space& member, Index nrhs) {
  return integers<T>(seed + 17 * k, member.dimension(), nrhs);
}

/// Checks out ← α op in + β out, member by member. With β = 0, out holds NaN before.
template <Scalar T>
void check_direction(const LinearOperator<T>& op, bool forward, const Blocks<T>& expected, Index nrhs,
                     T alpha, T beta) {
  const std::vector<Space>& from = forward ? expected.domains : expected.ranges;
  const std::vector<Space>& to = forward ? expected.ranges : expected.domains;
  const Space& in_space = forward ? op.domain() : op.range();
  const Space& out_space = forward ? op.range() : op.domain();
  EmbeddedMatrix<T> X(in_space.grid, in_space.layout(nrhs), 1, [](Index, Index) { return T(0); });
  EmbeddedMatrix<T> Y(in_space.grid, out_space.layout(nrhs), 2, [](Index, Index) { return quiet_nan<T>(); });
  DistMatrix<T> in = X.matrix(), out = Y.matrix();
  for (std::size_t l = 0; l < from.size(); ++l)
    stack_rows(from, l, in).fill(member_values<T>(1, l, from[l], nrhs));
  if (beta != T(0))
    for (std::size_t k = 0; k < to.size(); ++k)
      stack_rows(to, k, out).fill(member_values<T>(2, k, to[k], nrhs));
  forward ? op.apply(alpha, in, beta, out) : op.apply_adjoint(alpha, in, beta, out);

  CAPTURE(forward, nrhs, alpha, beta);
  for (std::size_t k = 0; k < to.size(); ++k) {
    Whole<T> sum = zeros<T>(to[k].dimension(), nrhs);
    for (std::size_t l = 0; l < from.size(); ++l)
      sum = added(sum, multiplied(forward ? Op::none : Op::adjoint,
                                  forward ? expected.blocks[k][l] : expected.blocks[l][k],
                                  member_values<T>(1, l, from[l], nrhs)));
    const Whole<T> old = beta == T(0) ? sum : member_values<T>(2, k, to[k], nrhs);
    const DistMatrix<T>& constant = out;
    CAPTURE(k);
    CHECK(mismatches(stack_rows(to, k, constant),
                     [&](Index i, Index j) { return alpha * sum(i, j) + beta * old(i, j); }) == 0);
  }
  CHECK(X.surroundings_untouched());
  CHECK(Y.surroundings_untouched());
}

/// A matrix in a stacked space, with these integers, or NaN.
template <Scalar T>
EmbeddedMatrix<T> stacked_matrix(const Space& space, const std::vector<Space>& members, Index nrhs,
                                 Index padding, std::uint64_t seed) {
  EmbeddedMatrix<T> X(space.grid, space.layout(nrhs), padding, [](Index, Index) { return quiet_nan<T>(); });
  DistMatrix<T> all = X.matrix();
  for (std::size_t k = 0; seed > 0 && k < members.size(); ++k)
    stack_rows(members, k, all).fill(member_values<T>(seed, k, members[k], nrhs));
  return X;
}

/// Checks Q = A P, U = AᴴR and V = AᴴQ, member by member.
template <Scalar T>
void check_normal_product(const LinearOperator<T>& op, const Blocks<T>& expected, Index nrhs) {
  const std::vector<Space>&data = expected.ranges, &models = expected.domains;
  const Index padding = 1 + nrhs % 2;  // after an odd one, no pair of numbers is aligned as a complex number
  EmbeddedMatrix<T> P = stacked_matrix<T>(op.domain(), models, nrhs, padding, 1),
                    R = stacked_matrix<T>(op.range(), data, nrhs, padding, 3),
                    Q = stacked_matrix<T>(op.range(), data, nrhs, padding, 0),
                    U = stacked_matrix<T>(op.domain(), models, nrhs, padding, 0),
                    V = stacked_matrix<T>(op.domain(), models, nrhs, padding, 0);
  DistMatrix<T> p = P.matrix(), r = R.matrix(), q = Q.matrix(), u = U.matrix(), v = V.matrix();
  op.normal_product(p, r, q, u, v);

  CAPTURE(nrhs);
  const auto agrees = [](const DistMatrix<T>& X, const std::vector<Space>& members, std::size_t k,
                         const Whole<T>& values, double tolerance) {
    return mismatches(stack_rows(members, k, X), values, tolerance) == 0;
  };
  std::vector<Whole<T>> products;
  for (std::size_t k = 0; k < data.size(); ++k) {
    Whole<T> sum = zeros<T>(data[k].dimension(), nrhs);
    for (std::size_t l = 0; l < models.size(); ++l)
      sum = added(sum, multiplied(Op::none, expected.blocks[k][l], member_values<T>(1, l, models[l], nrhs)));
    CHECK(agrees(q, data, k, sum, 0));
    products.push_back(std::move(sum));
  }
  for (std::size_t l = 0; l < models.size(); ++l) {
    Whole<T> of_R = zeros<T>(models[l].dimension(), nrhs), of_Q = of_R;
    for (std::size_t k = 0; k < data.size(); ++k) {
      of_R =
          added(of_R, multiplied(Op::adjoint, expected.blocks[k][l], member_values<T>(3, k, data[k], nrhs)));
      of_Q = added(of_Q, multiplied(Op::adjoint, expected.blocks[k][l], products[k]));
    }
    double most = 0;  // products of products may have too many digits to be exact
    for (const T& value : of_Q.values) most = std::max(most, static_cast<double>(std::abs(value)));
    CHECK(agrees(u, models, l, of_R, 0));
    CHECK(agrees(v, models, l, of_Q,
                 100 * most * static_cast<double>(std::numeric_limits<Real<T>>::epsilon())));
  }
  for (const EmbeddedMatrix<T>* matrix : {&P, &R, &Q, &U, &V}) CHECK(matrix->surroundings_untouched());
}

/// Checks both directions and normal products for no, one and a few columns, the dot test, and that only the
/// first use allocates.
template <Scalar T>
void check_operator(const OperatorPtr<T>& op, const Blocks<T>& expected) {
  const Backend& backend = *op->domain().grid->backend();
  CHECK(op->range() == stack_spaces(expected.ranges));
  CHECK(op->domain() == stack_spaces(expected.domains));
  std::vector<Index> allocations;
  for (const Index nrhs : {5, 1, 0}) {
    for (const bool forward : {true, false}) {
      check_direction(*op, forward, expected, nrhs, T(1), T(0));
      check_direction(*op, forward, expected, nrhs, number<T>(2, -1), number<T>(-1, 3));
    }
    check_normal_product(*op, expected, nrhs);
    allocations.push_back(backend.allocations());
  }
  CHECK(allocations.front() == allocations.back());
  CHECK(dot_test(*op).passed);
}

template <Scalar T>
void check_operator(const OperatorPtr<T>& op, const Whole<T>& expected) {
  check_operator(op, {{op->range()}, {op->domain()}, {{expected}}});
}

template <Scalar T>
OperatorPtr<T> matrix_operator(const GridPtr& grid, Algorithm algorithm, const Whole<T>& A) {
  DistMatrix<T> placed(grid, matrix_layout(algorithm, *grid, A.rows, A.cols));
  placed.fill(A);
  return matrix_mult(algorithm, std::move(placed), MatrixMultOptions{.panel = 3});
}

/// Calls check(make, text) for every grid and algorithm, where make(A) is the operator of a matrix.
template <Scalar T, class Check>
void for_each_algorithm(Check&& check) {
  for (const GridPtr& grid : all_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      INFO(describe(*grid) << ": " << name_of(algorithm));
      check([&](const Whole<T>& A) { return matrix_operator(grid, algorithm, A); });
    }
  }
}

/// Calls check(space) for spaces of this dimension along every axis, with columns along every axis that fits.
template <class Check>
void for_each_space(const GridPtr& grid, Index dimension, int variant, Check&& check) {
  for (const Axis rows : all_axes)
    for (const Axis columns : all_axes)
      if (legal(rows, columns))
        check(Space{grid, {rows, cut_somehow(dimension, grid->parts(rows), variant)}, columns});
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("Adjoints and multiples of operators are those of their matrices",
                        "[operator_algebra]", Scalars) {
  using T = TestType;
  const Whole<T> A = integers<T>(5, 7, 11);
  const T factor = number<T>(2, -3);
  for_each_algorithm<T>([&](const auto& make) {
    const OperatorPtr<T> op = make(A);
    check_operator(adjoint(op), adjoint_of(A));
    check_operator(adjoint(adjoint(op)), A);
    check_operator(scale(factor, op), scaled(factor, A));
    check_operator(adjoint(scale(factor, op)), adjoint_of(scaled(factor, A)));
    check_operator(scale(T(0), op), zeros<T>(7, 11));
  });
}

TEMPLATE_LIST_TEST_CASE("Sums and products of operators are those of their matrices", "[operator_algebra]",
                        Scalars) {
  using T = TestType;
  const Whole<T> A = integers<T>(5, 6, 9), B = integers<T>(6, 6, 9);
  const T factor = number<T>(-1, 2);
  for_each_algorithm<T>([&](const auto& make) {
    const OperatorPtr<T> a = make(A), b = make(B);
    check_operator(sum(a, scale(factor, b)), added(A, scaled(factor, B)));
    check_operator(sum(a, a), scaled(T(2), A));
    check_operator(product(a, adjoint(b)), multiplied(Op::none, A, adjoint_of(B)));
    const OperatorPtr<T> normal = product(adjoint(a), a);
    const Whole<T> AhA = multiplied(Op::adjoint, A, A);
    check_operator(normal, AhA);
    check_operator(product(a, normal), multiplied(Op::none, A, AhA));
    check_operator(sum(normal, identity<T>(a->domain())), added(AhA, eye<T>(9)));
  });
}

TEMPLATE_TEST_CASE("Identities redistribute between spaces, and zeros connect any two", "[operator_algebra]",
                   float, std::complex<double>) {
  using T = TestType;
  for (const GridPtr& grid : all_grids()) {
    for_each_space(grid, 7, 0, [&](const Space& domain) {
      for_each_space(grid, 7, 3, [&](const Space& range) {
        if (range.columns != domain.columns) return;
        INFO(describe(*grid) << " from " << name_of(domain.rows.axis) << " to " << name_of(range.rows.axis)
                             << ", columns along " << name_of(domain.columns));
        check_operator(identity<T>(range, domain), eye<T>(7));
      });
      for_each_space(grid, 4, 4, [&](const Space& range) {
        if (range.columns == domain.columns) check_operator(zero<T>(range, domain), zeros<T>(4, 7));
      });
      check_operator(identity<T>(domain), eye<T>(7));
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Operators whose layouts differ are joined by an identity", "[operator_algebra]",
                        Scalars) {
  using T = TestType;
  const Whole<T> A = integers<T>(5, 4, 8), B = integers<T>(6, 8, 5);
  for (const GridPtr& grid : all_grids()) {
    for (const auto& pair : {std::pair{Algorithm::summa, Algorithm::stationary_b},
                             {Algorithm::stationary_a, Algorithm::stationary_a}}) {
      INFO(describe(*grid) << ": " << name_of(pair.first) << " after " << name_of(pair.second));
      const OperatorPtr<T> a = matrix_operator(grid, pair.first, A),
                           b = matrix_operator(grid, pair.second, B);
      const OperatorPtr<T> between = identity<T>(a->domain(), b->range());
      check_operator(product(a, product(between, b)), multiplied(Op::none, A, B));
    }
  }
}

TEMPLATE_LIST_TEST_CASE("Diagonal operators are diagonal matrices, their adjoints conjugated",
                        "[operator_algebra]", Scalars) {
  using T = TestType;
  const Whole<T> d = integers<T>(5, 9, 1);
  const Whole<T> D = computed<T>(9, 9, [&](Index i, Index j) { return i == j ? d(i, 0) : T(0); });
  for (const GridPtr& grid : all_grids()) {
    for_each_space(grid, 9, 3, [&](const Space& space) {
      INFO(describe(*grid) << " along " << name_of(space.rows.axis) << ", columns along "
                           << name_of(space.columns));
      EmbeddedMatrix<T> memory(grid, {space.rows, Cut::uncut(1)}, 1, d);
      const OperatorPtr<T> op = diagonal(memory.matrix(), space.columns);
      CHECK(op->domain() == space);
      check_operator(op, D);
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Stacks are ordered part by part and move nothing", "[operator_algebra]", Scalars) {
  using T = TestType;
  const Whole<T> A = integers<T>(5, 7, 10), B = integers<T>(6, 4, 10), C = integers<T>(7, 7, 3);
  const T factor = number<T>(1, 2);
  for_each_algorithm<T>([&](const auto& make) {
    const OperatorPtr<T> a = make(A), b = make(B), c = make(C);
    check_operator(vertical_stack<T>({a}), A);
    check_operator(vertical_stack<T>({a, b, scale(factor, a)}),
                   {{a->range(), b->range(), a->range()}, {a->domain()}, {{A}, {B}, {scaled(factor, A)}}});
    check_operator(horizontal_stack<T>({a, c, a}),
                   {{a->range()}, {a->domain(), c->domain(), a->domain()}, {{A, C, A}}});
    const std::vector<Space> models{b->domain(), c->domain()}, data{b->range(), c->range()};
    const auto blocks = [](const Whole<T>& upper,
                           const Whole<T>& lower) -> std::vector<std::vector<Whole<T>>> {
      return {{upper, zeros<T>(upper.rows, lower.cols)}, {zeros<T>(lower.rows, upper.cols), lower}};
    };
    const OperatorPtr<T> both = block_diagonal<T>({b, c}), normal = product(adjoint(both), both);
    const Whole<T> BhB = multiplied(Op::adjoint, B, B), ChC = multiplied(Op::adjoint, C, C);
    check_operator(both, {data, models, blocks(B, C)});
    // Sums, products and powers of stacks are those of their members.
    check_operator(sum(scale(factor, both), both),
                   {data, models, blocks(scaled(factor + T(1), B), scaled(factor + T(1), C))});
    check_operator(product(normal, normal),
                   {models, models, blocks(multiplied(Op::none, BhB, BhB), multiplied(Op::none, ChC, ChC))});
    // [A C; B 0]: a stack of stacks has the members of both in one row.
    const OperatorPtr<T> lower = horizontal_stack<T>({b, zero<T>(b->range(), c->domain())});
    check_operator(vertical_stack<T>({horizontal_stack<T>({a, c}), lower}),
                   {{a->range(), b->range()}, {a->domain(), c->domain()}, {{A, C}, {B, zeros<T>(4, 3)}}});
  });
}

TEMPLATE_LIST_TEST_CASE("Damping stacks a multiple of the identity, wherever the model is",
                        "[operator_algebra]", Scalars) {
  using T = TestType;
  for (const auto& shape : {std::pair<Index, Index>{9, 5}, {2, 8}}) {
    const Whole<T> A = integers<T>(5, shape.first, shape.second);
    for_each_algorithm<T>([&](const auto& make) {
      const OperatorPtr<T> a = make(A), op = damped(a, 2.0);
      // Where model and data are held by other ranks, the model's rows are cut as the data's are.
      const Space& data = a->range();
      const Space along_data{data.grid, Cut::balanced(data.rows.axis, a->cols(), *data.grid), data.columns};
      for (const Space& penalty : {a->domain(), along_data}) {
        try {
          if (stack_spaces({data, penalty}) != op->range()) continue;
        } catch (const ShapeError&) {
          continue;
        }
        check_operator(op, {{data, penalty}, {a->domain()}, {{A}, {eye<T>(a->cols(), T(2))}}});
        return;
      }
      FAIL_CHECK("the range of a damped operator is of no expected kind");
    });
  }
}

TEMPLATE_LIST_TEST_CASE("Combinations read a matrix once in a normal product where they can",
                        "[operator_algebra]", Scalars) {
  using T = TestType;
  const Whole<T> A = integers<T>(5, 7, 10), B = integers<T>(6, 4, 10), C = integers<T>(7, 10, 3);
  const T factor = number<T>(1, 2);
  for_each_algorithm<T>([&](const auto& make) {
    const auto counted = std::make_shared<const CountedReads<T>>(make(A));
    const OperatorPtr<T> a = counted, b = make(B), c = make(C);
    const OperatorPtr<T> narrow = product(a, product(identity<T>(a->domain(), c->range()), c));
    const std::vector<Space> damped_data = damped_range(a->range(), a->domain());
    const auto check = [&](const OperatorPtr<T>& op, Index reads, const Blocks<T>& expected) {
      CHECK(op->has_one_pass() == (reads == 1));
      check_operator(op, expected);
      const Index before = counted->reads();
      check_normal_product(*op, expected, 2);
      if (a->domain().grid->is_member()) CHECK(counted->reads() - before == reads);
    };
    const auto whole = [&](const OperatorPtr<T>& op, Index reads, const Whole<T>& expected) {
      check(op, reads, {{op->range()}, {op->domain()}, {{expected}}});
    };
    whole(scale(factor, a), 1, scaled(factor, A));
    whole(adjoint(adjoint(a)), 1, A);
    whole(narrow, 1, multiplied(Op::none, A, C));
    whole(scale(factor, product(scale(factor, narrow), identity<T>(c->domain()))), 1,
          scaled(factor * factor, multiplied(Op::none, A, C)));
    check(damped(a, 2.0), 1, {damped_data, {a->domain()}, {{A}, {eye<T>(10, T(2))}}});
    check(vertical_stack<T>({b, scale(factor, a)}), 1,
          {{b->range(), a->range()}, {a->domain()}, {{B}, {scaled(factor, A)}}});
    check(adjoint(horizontal_stack<T>({adjoint(a), adjoint(b)})), 1,
          {{a->range(), b->range()}, {a->domain()}, {{A}, {B}}});
    check(
        block_diagonal<T>({b, a}), 1,
        {{b->range(), a->range()}, {b->domain(), a->domain()}, {{B, zeros<T>(4, 10)}, {zeros<T>(7, 10), A}}});
    // These need the whole of A P before any of Aᴴ.
    whole(adjoint(a), 3, adjoint_of(A));
    whole(sum(a, scale(factor, make(A))), 3, scaled(T(1) + factor, A));
    check(horizontal_stack<T>({a, a}), 6, {{a->range()}, {a->domain(), a->domain()}, {{A, A}}});
  });
}

TEMPLATE_TEST_CASE("A product on pairs reads its complex matrix once in a normal product",
                   "[operator_algebra]", float, double) {
  using R = TestType;
  using T = std::complex<R>;
  const Whole<T> A = integers<T>(5, 7, 4);
  const Whole<R> pairs = computed<R>(14, 8, [&](Index i, Index j) {
    const T z = A(i / 2, j / 2) * (j % 2 == 0 ? T(1) : T(0, 1));
    return i % 2 == 0 ? z.real() : z.imag();
  });
  for_each_algorithm<T>([&](const auto& make) {
    const auto counted = std::make_shared<const CountedReads<T>>(make(A));
    const OperatorPtr<R> op = on_pairs<R>(counted);
    CHECK(op->has_one_pass());
    CHECK_FALSE(on_pairs<R>(make(A))->has_one_pass());
    check_operator(on_pairs<R>(make(A)), pairs);
    check_operator(op, pairs);
    const Index before = counted->reads();
    check_normal_product(*op, {{op->range()}, {op->domain()}, {{pairs}}}, 2);
    if (op->domain().grid->is_member()) CHECK(counted->reads() - before == 1);
  });
}

TEST_CASE("The factor of a multiple keeps a normal product in range", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    const Space space{grid, Cut::balanced(Axis::all, 5, *grid)};
    const auto large = std::make_shared<const CountedReads<float>>(scale(1e25f, identity<float>(space)));
    const OperatorPtr<float> op = scale(1e-25f, OperatorPtr<float>(large));
    const DistMatrix<float> P = filled(grid, space.layout(1), [](Index, Index) { return 3.0f; });
    DistMatrix<float> Q(grid, space.layout(1)), U(grid, space.layout(1)), V(grid, space.layout(1));
    op->normal_product(P, P, Q, U, V);
    for (const DistMatrix<float>* X : {&Q, &U, &V})
      CHECK(mismatches(
                *X, [](Index, Index) { return 3.0f; }, 1e-5) == 0);
  }
}

TEST_CASE("Damping keeps an image in the order in which it is cut", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    for (const auto& [models, data] :
         {std::pair{Axis::all, Axis::uncut}, std::pair{Axis::grid_rows, Axis::grid_cols},
          std::pair{Axis::uncut, Axis::all}}) {
      for (const int cut : {0, 1}) {
        const Space model = array_space(grid, {4, 6}, cut, models);
        const OperatorPtr<double> A = identity<double>(array_space(grid, {4, 6}, 1 - cut, data), model),
                                  op = damped(A, 2.0);
        INFO(describe(*grid) << ": " << model.describe() << " and " << A->range().describe());
        CHECK(damped_range(A->range(), model)[1].dims.sizes() == std::vector<Index>{4, 6});
        DistMatrix<double> x(grid, model.layout(2)), y(grid, op->range().layout(2)), z(grid, model.layout(2));
        x.fill([](Index i, Index j) { return static_cast<double>(i + 100 * j); });
        op->apply(1, x, 0, y);
        op->apply_adjoint(1, y, 0, z);
        CHECK(mismatches(z, [](Index i, Index j) { return 5.0 * static_cast<double>(i + 100 * j); }) == 0);
      }
    }
  }
}

TEST_CASE("Stacked spaces may mix axes that the same ranks hold part for part", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const Space first{grid, Cut::balanced(Axis::all, 11, *grid), Axis::uncut};
    const Space second{grid, Cut::balanced(Axis::all_transposed, 7, *grid), Axis::uncut};
    const std::vector<Space> members{first, second};
    const Space stack = stack_spaces(members);
    CHECK(stack.rows.axis == Axis::all);
    CHECK(stack.dimension() == 18);
    DistMatrix<double> X(grid, stack.layout(2));
    X.fill([](Index i, Index j) { return static_cast<double>(i + 100 * j); });
    DistMatrix<double> upper = stack_rows(members, 0, X), lower = stack_rows(members, 1, X);
    CHECK(upper.layout() == first.layout(2));
    CHECK(lower.layout() == second.layout(2));
    if (!grid->is_member()) continue;
    CHECK(upper.local().rows + lower.local().rows == X.local().rows);
    CHECK(upper.local().data == X.local().data);
    const std::vector<double> all = column_norms(X), above = column_norms(upper), below = column_norms(lower);
    for (std::size_t j = 0; j < 2; ++j)
      CHECK(std::abs(all[j] - std::hypot(above[j], below[j])) <= 1e-14 * all[j]);
  }
}

TEST_CASE("Operators count what they were used for", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const auto op =
        matrix_mult(Algorithm::summa, DistMatrix<double>(grid, blocks_2d(*grid, 3, 4)), MatrixMultOptions{});
    for (const Index nrhs : {5, 0, 2}) {
      DistMatrix<double> X(grid, op->domain().layout(nrhs)), Y(grid, op->range().layout(nrhs));
      X.set_zero();
      op->apply(1.0, X, 0.0, Y);
      if (nrhs > 0) op->apply_adjoint(1.0, Y, 0.0, X);
    }
    CHECK(op->activity().forward_applications == 3);
    CHECK(op->activity().forward_columns == 7);
    CHECK(op->activity().adjoint_applications == 2);
    CHECK(op->activity().adjoint_columns == 7);
  }
}

TEST_CASE("A result that overlaps the operand is refused", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    if (!grid->is_member()) continue;
    INFO(describe(*grid));
    const Space space{grid, Cut::balanced(Axis::all, 5, *grid), Axis::uncut};
    const Layout layout = space.layout(2);
    const Index rows = DistMatrix<double>(grid, layout).local().rows;
    // Two matrices of two columns in one block: the second begins this many columns and rows further.
    const Index stride = 2 * rows + 2;
    const Buffer<double> memory(grid->backend(), 4 * stride);
    const auto refused = [&](Index column, Index row) {
      const OperatorPtr<double> op = identity<double>(space);
      const MatrixView<double> first(memory.data(), rows, 2, stride);
      const MatrixView<double> second(memory.data() + column * stride + row, rows, 2, stride);
      DistMatrix<double> x(grid, layout, first), y(grid, layout, second);
      x.fill([](Index i, Index j) { return static_cast<double>(i + 7 * j + 1); });
      const Ending forward = ending_of([&] { op->apply(1, x, 0, y); });
      const Ending adjoint = ending_of([&] { op->apply_adjoint(1, x, 0, y); });
      CHECK(all_ended_alike(*grid, forward));
      CHECK(all_ended_alike(*grid, adjoint));
      CHECK(forward.text.empty() == adjoint.text.empty());
      CHECK((forward.type == nullptr || *forward.type == typeid(UsageError)));
      return !forward.text.empty();
    };
    // Some rank has a row, so all refuse.
    CHECK(refused(0, 0));
    CHECK(refused(1, 0));
    CHECK_FALSE(refused(2, 0));
    CHECK_FALSE(refused(0, rows));  // rows that interleave
    CHECK_FALSE(refused(1, rows));
    if (grid->comm().size() == 1) CHECK(refused(0, rows - 1));
  }
}

TEST_CASE("A result that overlaps the operand is refused at later applications, too", "[operator_algebra]") {
  const GridPtr grid = all_grids().front();
  if (!grid->is_member()) return;
  const Space space{grid, Cut::balanced(Axis::uncut, 5, *grid), Axis::uncut};
  const OperatorPtr<double> op = identity<double>(space);
  DistMatrix<double> x = filled(grid, space.layout(2), [](Index, Index) { return 1.0; });
  DistMatrix<double> y(grid, space.layout(2));
  op->apply(1, x, 0, y);
  const Ending mine = ending_of([&] { op->apply(1, x, 0, x); });
  CHECK(mine.text.find("overlap in memory") != std::string::npos);
  CHECK(all_ended_alike(*grid, mine));
}

TEST_CASE("Errors of the algebra name both layouts and the way out, which works", "[operator_algebra]") {
  for (const GridPtr& grid : all_grids()) {
    INFO(describe(*grid));
    const Space all{grid, Cut::balanced(Axis::all, 6, *grid)}, uncut{grid, Cut::uncut(6)};
    const OperatorPtr<double> a = identity<double>(all, all), b = identity<double>(uncut, uncut);
    const OperatorPtr<double> c = identity<double>(uncut, all), d = identity<double>(all, uncut);
    for (const std::string& text :
         {message_of<ShapeError>([&] {
            vertical_stack<double>({a, d});
          }),
          message_of<ShapeError>([&] {
            horizontal_stack<double>({a, c});
          }),
          message_of<ShapeError>([&] { sum(a, c); }), message_of<ShapeError>([&] { sum(a, d); }),
          message_of<ShapeError>([&] { product(a, b); })}) {
      INFO(text);
      CHECK(contains(text, "dimension 6 along all with columns uncut"));
      CHECK(contains(text, "dimension 6 uncut with columns uncut"));
      CHECK(contains(text, "identity() between the two redistributes"));
    }
    CHECK(vertical_stack<double>({a, product(d, c)})->rows() == 12);
    CHECK(horizontal_stack<double>({a, product(d, c)})->cols() == 12);
    CHECK(sum(a, product(d, c))->cols() == 6);
    CHECK(product(product(a, d), b)->cols() == 6);
    const std::string sizes = message_of<ShapeError>([&] {
      const Space five{grid, Cut::balanced(Axis::all, 5, *grid)};
      vertical_stack<double>({a, identity<double>(five, five)});
    });
    CHECK(contains(sizes, "dimension 5 along all"));
    CHECK(!contains(sizes, "identity()"));  // which could not help
  }
}

TEST_CASE("Parts that do not fit together are refused on all ranks, without a message",
          "[operator_algebra]") {
  using T = double;
  const std::vector<GridPtr> grids = all_grids();
  for (const GridPtr& grid : grids) {
    const auto make = [&](Algorithm algorithm, Index rows, Index cols) {
      return matrix_operator<T>(grid, algorithm, zeros<T>(rows, cols));
    };
    const TrafficSince traffic(world());
    INFO(describe(*grid));
    const OperatorPtr<T> a = make(Algorithm::summa, 4, 6), wider = make(Algorithm::summa, 4, 7),
                         taller = make(Algorithm::summa, 5, 6), elsewhere = make(Algorithm::block, 4, 6);
    CHECK_THROWS_AS(sum(a, wider), ShapeError);
    CHECK_THROWS_AS(sum(a, taller), ShapeError);
    CHECK_THROWS_AS(sum(a, elsewhere), ShapeError);
    CHECK_THROWS_AS(product(a, a), ShapeError);
    CHECK_THROWS_AS(product(a, adjoint(wider)), ShapeError);
    CHECK_THROWS_AS(product(a, adjoint(elsewhere)), ShapeError);
    CHECK_THROWS_AS(identity<T>(a->range(), a->domain()), ShapeError);
    CHECK_THROWS_AS(identity<T>(a->domain(), elsewhere->domain()), ShapeError);
    CHECK_THROWS_AS(zero<T>(a->range(), elsewhere->domain()), ShapeError);
    CHECK_THROWS_AS(vertical_stack<T>({}), ShapeError);
    CHECK_THROWS_AS(horizontal_stack<T>({}), ShapeError);
    CHECK_THROWS_AS(block_diagonal<T>({}), ShapeError);
    CHECK_THROWS_AS(stack_spaces({}), ShapeError);
    CHECK_THROWS_AS(vertical_stack<T>({a, wider}), ShapeError);
    CHECK_THROWS_AS(horizontal_stack<T>({a, taller}), ShapeError);
    CHECK_THROWS_AS(vertical_stack<T>({a, elsewhere}), ShapeError);
    CHECK_THROWS_AS(block_diagonal<T>({a, elsewhere}), ShapeError);
    CHECK_THROWS_AS(diagonal(DistMatrix<T>(grid, replicated(4, 2))), ShapeError);
    CHECK_THROWS_AS(diagonal(DistMatrix<T>(grid, replicated(4, 0))), ShapeError);
    CHECK_THROWS_AS(
        diagonal(DistMatrix<T>(grid, {Cut::uncut(4), {Axis::all, cut_somehow(1, grid->shape().size(), 1)}})),
        ShapeError);
    CHECK_THROWS_AS(diagonal(DistMatrix<T>(grid, row_blocks(*grid, 4, 1)), Axis::grid_rows), ShapeError);
    if (grid->shape().size() > 1) {
      const Space split{grid, Cut::balanced(Axis::all, 4, *grid), Axis::uncut};
      const Space copied{grid, Cut::uncut(4), Axis::uncut};
      CHECK_THROWS_AS(stack_spaces({split, copied}), ShapeError);
      CHECK_THROWS_AS(vertical_stack<T>({identity<T>(copied), identity<T>(split, copied)}), ShapeError);
      const Space uneven{grid, {Axis::all, cut_somehow(4, grid->shape().size(), 1)}, Axis::uncut};
      CHECK_THROWS_AS(product(identity<T>(uneven), identity<T>(split)), ShapeError);
    }
    if (grid != grids.front()) {
      const OperatorPtr<T> far = matrix_operator<T>(grids.front(), Algorithm::summa, zeros<T>(4, 6));
      CHECK_THROWS_AS(sum(a, far), ShapeError);
      CHECK_THROWS_AS(product(a, adjoint(far)), ShapeError);
      CHECK_THROWS_AS(vertical_stack<T>({a, far}), ShapeError);
      CHECK_THROWS_AS(zero<T>(a->range(), far->domain()), ShapeError);
    }
    CHECK(traffic.nothing());
  }
}
