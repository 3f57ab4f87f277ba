// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/small_dense.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "gridlops/base/random.hpp"
#include "support/catch.hpp"

using namespace gridlops;

namespace {

template <class S>
SmallMatrix<S> random_matrix(std::uint64_t seed, Index rows, Index cols) {
  SmallMatrix<S> A(rows, cols);
  for (Index j = 0; j < cols; ++j)
    for (Index i = 0; i < rows; ++i) A(i, j) = counter_random<S>(seed, i, j);
  return A;
}

template <class S>
SmallMatrix<S> difference(const SmallMatrix<S>& A, const SmallMatrix<S>& B) {
  REQUIRE(A.rows() == B.rows());
  REQUIRE(A.cols() == B.cols());
  SmallMatrix<S> result = A;
  for (Index j = 0; j < A.cols(); ++j)
    for (Index i = 0; i < A.rows(); ++i) result(i, j) -= B(i, j);
  return result;
}

template <class S>
double norm(const SmallMatrix<S>& A) {
  double squares = 0;
  for (Index j = 0; j < A.cols(); ++j) squares += A.column_norm_squared(j);
  return std::sqrt(squares);
}

template <class S>
SmallMatrix<S> gram(const SmallMatrix<S>& A) {
  return product(adjoint(A), A);
}

std::vector<double> all(Index count, double value) {
  return std::vector<double>(static_cast<std::size_t>(count), value);
}

}  // namespace

TEMPLATE_TEST_CASE("Small matrices multiply, stack and transpose", "", double, std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  const Small A = random_matrix<TestType>(1, 4, 3), B = random_matrix<TestType>(2, 3, 5);
  const Small C = product(A, B);
  for (Index i = 0; i < 4; ++i) {
    for (Index j = 0; j < 5; ++j) {
      TestType sum(0);
      for (Index k = 0; k < 3; ++k) sum += A(i, k) * B(k, j);
      CHECK(std::abs(C(i, j) - sum) <= 1e-15);
    }
  }
  CHECK(norm(difference(adjoint(C), product(adjoint(B), adjoint(A)))) <= 1e-14);
  CHECK(adjoint(A)(2, 1) == conjugate(A(1, 2)));
  CHECK(norm(difference(stacked(A, Small::identity(3)).row_block({4, 3}), Small::identity(3))) == 0);
  CHECK(product(Small(4, 0), Small(0, 5)).cols() == 5);
  CHECK(norm(product(Small(4, 0), Small(0, 5))) == 0);
}

TEMPLATE_TEST_CASE("Householder's reflections make triangles and keep lengths", "", double,
                   std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  for (const auto& shape : {std::pair<Index, Index>{7, 4}, {5, 5}, {3, 0}, {0, 0}}) {
    Small A = random_matrix<TestType>(1, shape.first, shape.second);
    if (shape.second == 4)
      for (Index i = 0; i < 7; ++i) A(i, 2) = TestType(0);
    const HouseholderQr<TestType> qr(A);
    const Small QhA = qr.apply_adjoint(A), B = random_matrix<TestType>(2, shape.first, 6);
    CHECK(norm(difference(QhA.row_block({0, shape.second}), qr.upper())) <= 1e-14);
    CHECK(norm(QhA.row_block({shape.second, shape.first - shape.second})) <= 1e-14);
    CHECK(norm(difference(gram(qr.apply_adjoint(B)), gram(B))) <= 1e-13);
    for (Index j = 0; j < shape.second; ++j)
      for (Index i = j + 1; i < shape.second; ++i) CHECK(qr.upper()(i, j) == TestType(0));
  }
}

/// With P A = Q [R; 0], the upper rows of Qᴴ P B are R⁻ᴴ Aᴴ B. Here that product has no terms that cancel.
TEMPLATE_TEST_CASE("Rows that are far smaller than others keep their digits in Householder's reflections", "",
                   double, std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  for (const double size : {std::ldexp(1.0, -50), std::ldexp(1.0, -400)}) {
    Small small_rows = random_matrix<TestType>(1, 3, 3), A(6, 3), B(6, 2);
    for (Index j = 0; j < 3; ++j) {
      for (Index i = 0; i < 3; ++i) A(i, j) = small_rows(i, j) * size;
      A(3 + j, j) = TestType(static_cast<double>(3 + j));
    }
    for (Index j = 0; j < 2; ++j)
      for (Index i = 0; i < 3; ++i) B(i, j) = counter_random<TestType>(2, i, j);
    const HouseholderQr<TestType> qr(A);
    const Small upper = qr.apply_adjoint(B).row_block({0, 3}),
                expected = product(adjoint(inverse_upper(qr.upper())), product(adjoint(A), B));
    CHECK(norm(difference(upper, expected)) <= 1e-14 * norm(expected));
  }
}

TEMPLATE_TEST_CASE("Triangles are inverted, but for rows that are too small", "", double,
                   std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  Small R = HouseholderQr<TestType>(random_matrix<TestType>(1, 6, 6)).upper();
  CHECK(norm(difference(product(R, inverse_upper(R)), Small::identity(6))) <= 1e-12);
  R(3, 3) = TestType(1e-20);
  const Small inverse = inverse_upper(R, 1e-16);
  // The others are solved as if the dropped unknown were not there.
  const Small b = product(R, Small::identity(6));
  for (Index j = 0; j < 6; ++j) CHECK(inverse(3, j) == TestType(0));
  for (Index j = 0; j < 6; ++j) {
    if (j == 3) continue;
    for (Index i = 0; i < 6; ++i) {
      TestType sum(0);
      for (Index k = 0; k < 6; ++k) sum += inverse(i, k) * b(k, j);
      if (i != 3) CHECK(std::abs(sum - TestType(i == j ? 1.0 : 0.0)) <= 1e-12);
    }
  }
}

TEMPLATE_TEST_CASE("The factors of a Gram matrix make columns orthonormal", "", double,
                   std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  Small X = random_matrix<TestType>(1, 30, 5);
  for (Index i = 0; i < 30; ++i) X(i, 2) *= 1e-40;  // the rank decision sees directions, not lengths
  const auto factors = factor_gram(gram(X), all(X.cols(), 1e-14), all(X.cols(), 1));
  REQUIRE(factors.C.cols() == 5);
  CHECK(norm(difference(gram(product(X, factors.C)), Small::identity(5))) <= 1e-13);
  const Small back = product(product(X, factors.C), factors.R);
  for (Index j = 0; j < 5; ++j)
    for (Index i = 0; i < 30; ++i)
      CHECK(std::abs(back(i, j) - X(i, j)) <= 1e-13 * std::abs(X(i, j)) + (j == 2 ? 1e-53 : 1e-13));
}

TEMPLATE_TEST_CASE("Dependent columns come out short, and zero ones not at all", "", double,
                   std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  Small X = random_matrix<TestType>(1, 30, 6);
  for (Index i = 0; i < 30; ++i) {
    X(i, 1) = X(i, 0);
    X(i, 3) = TestType(0);
    X(i, 4) = X(i, 5) + 1e-10 * X(i, 4);
  }
  const auto factors = factor_gram(gram(X), all(X.cols(), 1e-14), all(X.cols(), 1));
  REQUIRE(factors.C.cols() == 5);
  REQUIRE(factors.origins.size() == 5);
  const Small basis = product(X, factors.C);
  CHECK(norm(difference(product(basis, factors.R), X)) <= 1e-12);
  for (Index r = 0; r < 5; ++r) {
    const double length = std::sqrt(basis.column_norm_squared(r));
    CHECK((r < 3 ? std::abs(length - 1) <= 1e-10 : length <= 0.1));
  }
  const auto chosen = factors.select({0, 1, 2});
  CHECK(norm(difference(gram(product(X, chosen.C)), Small::identity(3))) <= 1e-12);
  CHECK(norm(difference(product(product(X, chosen.C), chosen.R), X)) <= 1e-8);
  CHECK(chosen.lengths.size() == 3);
}

TEMPLATE_TEST_CASE("What is short in its unit takes nothing of other columns with it", "", double,
                   std::complex<double>) {
  using Small = SmallMatrix<TestType>;
  Small X = random_matrix<TestType>(1, 30, 4);
  for (Index i = 0; i < 30; ++i) X(i, 2) *= 2;
  std::vector<double> units = all(4, 1);
  units[2] = 1e-16;
  const auto factors = factor_gram(gram(X), all(4, 1e-14), units);
  REQUIRE(factors.origins.back() == 2);
  const auto others = factors.select({0, 1, 2});
  const Small back = product(product(X, others.C), others.R);
  for (const Index j : {0, 1, 3})
    for (Index i = 0; i < 30; ++i) CHECK(std::abs(back(i, j) - X(i, j)) <= 1e-13);
}

TEST_CASE("The factorisation of a Gram matrix with NaN ends, with NaN in the factor") {
  SmallMatrix<double> G = SmallMatrix<double>::identity(4);
  G(1, 2) = G(2, 1) = G(2, 2) = std::numeric_limits<double>::quiet_NaN();
  const auto factors = factor_gram(G, all(G.cols(), 1e-14), all(G.cols(), 1));
  CHECK(std::isnan(norm(factors.R)));
}
