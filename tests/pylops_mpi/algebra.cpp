// SPDX-License-Identifier: BSD-3-Clause
// The cases of test_linearop.py, test_stackedlinearop.py, test_blockdiag.py and test_stack.py. References are
// dense matrices, multiplied in plain loops.
#include "gridlops/base/error.hpp"
#include "gridlops/ops/array_operators.hpp"
#include "gridlops/ops/dot_test.hpp"
#include "gridlops/ops/operator_algebra.hpp"
#include "pylops_mpi/whole_arrays.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

struct Case {
  Index rows, cols;  // of each rank's matrix
  bool complex;
};
const std::vector<Case> cases{{101, 101, false}, {301, 101, false}, {101, 101, true}, {301, 101, true}};

/// (rank + 1) · ones, for complex T (rank + 1)(1 + i).
template <Scalar T>
OfRank<T> ones_of_ranks(double factor = 1) {
  return [factor](int rank, Index, Index) { return number<T>(factor * (rank + 1), factor * (rank + 1)); };
}

template <Scalar T>
Whole<T> dense_matrix(Index rows, Index cols, const std::function<T(Index, Index)>& value) {
  return {rows, cols, dense<T>(rows, cols, value)};
}
template <Scalar T>
Whole<T> conjugate_transpose(const Whole<T>& A) {
  return dense_matrix<T>(A.cols, A.rows, [&](Index i, Index j) { return conjugate(A(j, i)); });
}

/// The first derivative of n samples: centred, and 0 at the ends.
template <Scalar T>
Whole<T> first_derivative_matrix(Index n) {
  return dense_matrix<T>(n, n, [n](Index i, Index j) {
    return i == 0 || i == n - 1 ? T(0) : T(j == i + 1 ? 0.5 : j == i - 1 ? -0.5 : 0.0);
  });
}
template <Scalar T>
Whole<T> second_derivative_matrix(Index n) {
  return dense_matrix<T>(n, n, [n](Index i, Index j) {
    return i == 0 || i == n - 1 ? T(0) : T(j == i ? -2.0 : std::abs(j - i) == 1 ? 1.0 : 0.0);
  });
}

/// What a matrix, or several in turn, make of a vector in each direction.
template <Scalar T>
using VectorProduct = std::function<std::vector<T>(const std::vector<T>& x, Op op)>;

template <Scalar T>
VectorProduct<T> one(const Whole<T>& A) {
  return [=](const std::vector<T>& x, Op op) { return times(A, x, op); };
}
template <Scalar T>
VectorProduct<T> in_turn(const Whole<T>& A, const VectorProduct<T>& B) {
  return [=](const std::vector<T>& x, Op op) {
    return op == Op::none ? times(A, B(x, op)) : B(times(A, x, op), op);
  };
}

/// Both directions on one column; 1e-9 in test_linearop.py, 1e-14 in the others.
template <Scalar T>
void check_product(const LinearOperator<T>& op, const VectorProduct<T>& expected, double tolerance = 1e-14) {
  const std::vector<T> x = random_array<T>(1, op.cols()), y = random_array<T>(2, op.rows());
  CHECK(difference(applied(op, column(op.domain(), x)), expected(x, Op::none)) <= tolerance);
  CHECK(difference(applied(op, column(op.range(), y), false), expected(y, Op::adjoint)) <= tolerance);
  CHECK(dot_test(op).passed);
}
template <Scalar T>
void check_matrix(const LinearOperator<T>& op, const Whole<T>& A) {
  REQUIRE(op.rows() == A.rows);
  REQUIRE(op.cols() == A.cols);
  check_product(op, one(A));
}

template <class Check>
void for_each_case(Check&& check) {
  const GridPtr grid = line_of_ranks();
  for (const Case& of : cases) {
    CAPTURE(of.rows, of.cols, of.complex);
    with_type(of.complex, [&](auto type) { check(grid, of, type); });
  }
}

/// An array of the rows of a space, whose members are cut alike.
Space as_array(Space space) {
  space.dims = Dims({space.rows.partition});
  return space;
}

}  // namespace

TEST_CASE("Block diagonals, stacks and rows of matrices are their dense matrices", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const Case& of, auto type) {
    using T = decltype(type);
    for (const auto& [data_everywhere, model_everywhere] :
         {std::pair{false, false}, {false, true}, {true, false}}) {
      const Space range = rows_on_ranks(grid, of.rows, data_everywhere),
                  domain = rows_on_ranks(grid, of.cols, model_everywhere);
      CAPTURE(data_everywhere, model_everywhere);
      const OfRank<T> element = ones_of_ranks<T>();
      const OperatorPtr<T> op = matrices_of_ranks(range, domain, element);
      const Whole<T> A = whole_of_ranks(range, domain, element);
      check_matrix(*op, A);
      check_matrix(*adjoint(op), conjugate_transpose(A));
      check_matrix(*scale(number<T>(-4, 1), op), dense_matrix<T>(A.rows, A.cols, [&](Index i, Index j) {
        return number<T>(-4, 1) * A(i, j);
      }));
      const OperatorPtr<T> twice = matrices_of_ranks(range, domain, ones_of_ranks<T>(2));
      check_matrix(*sum(op, twice),
                   dense_matrix<T>(A.rows, A.cols, [&](Index i, Index j) { return 3.0 * A(i, j); }));
      const Whole<T> twice_A = whole_of_ranks(range, domain, ones_of_ranks<T>(2));
      check_product(*product(op, adjoint(twice)), in_turn(A, one(conjugate_transpose(twice_A))));
    }
  });
}

TEST_CASE("Powers of operators are products, also of stacked ones", "[pylops_mpi]") {
  // PyLops-MPI's power of a stacked operator is the identity: (S³) 1 is 1 there, and 8 here for S = 2 I.
  for_each_case([](const GridPtr& grid, const Case& of, auto type) {
    using T = decltype(type);
    if (of.rows != of.cols) return;
    const Space space = rows_on_ranks(grid, of.rows);
    const OfRank<T> element = ones_of_ranks<T>(0.01);
    const OperatorPtr<T> op = matrices_of_ranks(space, space, element);
    const Whole<T> A = whole_of_ranks(space, space, element);
    check_product(*product(op, product(op, op)), in_turn(A, in_turn(A, one(A))));
    const OperatorPtr<T> two = scale(T(2), identity<T>(space)), stacked = block_diagonal<T>({two, two});
    const OperatorPtr<T> cube = product(stacked, product(stacked, stacked));
    const DistMatrix<T> ones = filled(grid, cube->domain().layout(1), [](Index, Index) { return T(1); });
    CHECK(mismatches(applied(*cube, ones), [](Index, Index) { return T(8); }) == 0);
  });
}

TEST_CASE("An operator that every rank applies alike takes and gives what is everywhere", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const Case& of, auto type) {
    using T = decltype(type);
    if (of.rows != of.cols) return;
    const Space everywhere = rows_on_ranks(grid, of.cols, true), ranks = rows_on_ranks(grid, of.rows);
    const Whole<T> D1 = first_derivative_matrix<T>(of.cols), D2 = second_derivative_matrix<T>(of.cols);
    const OperatorPtr<T> first = band_operator<T>(as_array(everywhere), 0, first_derivative(of.cols)),
                         second = band_operator<T>(as_array(everywhere), 0, second_derivative(of.cols));
    check_matrix(*first, D1);
    check_product(*product(first, second), in_turn(D1, one(D2)));
    // Every rank's matrix after the derivative of what is everywhere.
    const OfRank<T> element = ones_of_ranks<T>();
    const OperatorPtr<T> stack = matrices_of_ranks(ranks, everywhere, element);
    check_product(*product(stack, first), in_turn(whole_of_ranks(ranks, everywhere, element), one(D1)), 1e-9);
  });
}

TEST_CASE("Stacks of block diagonals and derivatives are stacks of their matrices", "[pylops_mpi]") {
  for_each_case([](const GridPtr& grid, const Case& of, auto type) {
    using T = decltype(type);
    const Space model = rows_on_ranks(grid, of.cols), data = rows_on_ranks(grid, of.rows);
    const OfRank<T> element = ones_of_ranks<T>();
    const OperatorPtr<T> B = matrices_of_ranks(data, model, element),
                         first = band_operator<T>(as_array(model), 0, first_derivative(model.dimension())),
                         second = band_operator<T>(as_array(model), 0, second_derivative(model.dimension()));
    const std::vector<OperatorPtr<T>> members{B, first, second};
    const std::vector<Whole<T>> matrices{whole_of_ranks(data, model, element),
                                         first_derivative_matrix<T>(model.dimension()),
                                         second_derivative_matrix<T>(model.dimension())};
    const std::vector<Space> ranges{data, model, model}, domains{model, model, model};
    const OperatorPtr<T> diagonal = block_diagonal(members), vertical = vertical_stack(members),
                         horizontal = horizontal_stack<T>({adjoint(B), first, second});
    std::vector<std::vector<T>> x, y;
    for (std::size_t k = 0; k < members.size(); ++k) {
      x.push_back(random_array<T>(1 + k, matrices[k].cols));
      y.push_back(random_array<T>(11 + k, matrices[k].rows));
    }
    const auto stacked = [&](const std::vector<Space>& spaces, const std::vector<std::vector<T>>& values) {
      DistMatrix<T> X(grid, stack_spaces(spaces).layout(1));
      for (std::size_t k = 0; k < spaces.size(); ++k) {
        DistMatrix<T> rows = stack_rows(spaces, k, X);
        copy(column(spaces[k], values[k]), rows);
      }
      return X;
    };
    const auto part = [](const std::vector<Space>& spaces, std::size_t k, const ConstDistMatrix<T>& X,
                         const std::vector<T>& expected) {
      return difference<T>(stack_rows<T>(spaces, k, X), expected);
    };
    // Diagonal: each member on its own; and twice that, and its adjoint.
    for (const double factor : {1.0, -3.0}) {
      const OperatorPtr<T> op = factor == 1 ? diagonal : sum(scale(T(-4), diagonal), diagonal);
      const DistMatrix<T> Y = applied(*op, stacked(domains, x)),
                          X = applied(*adjoint(op), stacked(ranges, y));
      for (std::size_t k = 0; k < members.size(); ++k) {
        std::vector<T> forward = times(matrices[k], x[k]), back = times(matrices[k], y[k], Op::adjoint);
        for (T& value : forward) value *= factor;
        for (T& value : back) value *= factor;
        CHECK(part(ranges, k, Y, forward) <= 1e-14);
        CHECK(part(domains, k, X, back) <= 1e-14);
      }
    }
    // Vertical: all of one model; its adjoint sums.
    const DistMatrix<T> Y = applied(*vertical, column(model, x[0]));
    std::vector<T> back(x[0].size());
    for (std::size_t k = 0; k < members.size(); ++k) {
      CHECK(part(ranges, k, Y, times(matrices[k], x[0])) <= 1e-14);
      const std::vector<T> share = times(matrices[k], y[k], Op::adjoint);
      for (std::size_t i = 0; i < back.size(); ++i) back[i] += share[i];
    }
    CHECK(difference(applied(*vertical, stacked(ranges, y), false), back) <= 1e-14);
    // Horizontal: the adjoint of a stack of adjoints.
    std::vector<T> forward = times(matrices[0], y[0], Op::adjoint);
    for (std::size_t k = 1; k < members.size(); ++k) {
      const std::vector<T> share = times(matrices[k], y[k]);
      for (std::size_t i = 0; i < forward.size(); ++i) forward[i] += share[i];
    }
    CHECK(difference(applied(*horizontal, stacked({data, model, model}, y)), forward) <= 1e-14);
    for (const OperatorPtr<T>& op : {diagonal, vertical, horizontal}) CHECK(dot_test(*op).passed);
    const OperatorPtr<T> row = horizontal_stack<T>({adjoint(B), adjoint(first)}),
                         column_of_two = adjoint(vertical_stack<T>({B, first}));
    const DistMatrix<T> both = stacked({data, model}, {y[0], y[1]});
    const DistMatrix<T> sum_of_row = applied(*column_of_two, both);
    std::vector<T> of_both = times(matrices[0], y[0], Op::adjoint);
    const std::vector<T> share = times(matrices[1], y[1], Op::adjoint);
    for (std::size_t i = 0; i < of_both.size(); ++i) of_both[i] += share[i];
    CHECK(difference(sum_of_row, of_both) <= 1e-14);
    CHECK(mismatches(applied(*row, both),
                     [&, here = sum_of_row.local(), begin = sum_of_row.local_row_range().begin](
                         Index i, Index) { return here(i - begin, 0); }) == 0);
  });
}

TEST_CASE("Dimensions of arrays stay with operators made of others", "[pylops_mpi]") {
  const GridPtr grid = line_of_ranks();
  const Space space = array_space(grid, {12, 7, 5}, 0);
  const std::vector<Index> sizes = space.dims.sizes();
  const OperatorPtr<double> A = band_operator<double>(space, 0, first_derivative(12)),
                            R = restriction<double>(space, 1, {0, 2, 5});
  for (const OperatorPtr<double>& op :
       {scale(-1.0, A), sum(A, A), product(A, A), adjoint(A), product(A, adjoint(A))}) {
    CHECK(op->domain().dims.sizes() == sizes);
    CHECK(op->range().dims.sizes() == sizes);
  }
  const std::vector<Index> kept{12, 3, 5};
  CHECK(R->range().dims.sizes() == kept);
  CHECK(adjoint(R)->domain().dims.sizes() == kept);
  CHECK(product(R, A)->range().dims.sizes() == kept);
  CHECK(adjoint(product(R, A))->range().dims.sizes() == sizes);
  CHECK_THROWS_AS(product(A, R), ShapeError);
  CHECK_THROWS_AS(sum(A, R), ShapeError);
}
