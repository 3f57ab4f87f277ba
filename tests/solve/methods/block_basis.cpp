// SPDX-License-Identifier: BSD-3-Clause
#include "solve/methods/block_basis.hpp"

#include "support/catch.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

constexpr Index rows = 2500;  // these are several panels

/// Columns from an independent one to nearly the first one, at these distances, and a zero one at the end.
template <Scalar T>
Element<T> nearly_dependent(const std::vector<double>& distances) {
  const Element<T> x = random_elements<T>(5);
  return [=](Index i, Index j) {
    const auto k = static_cast<std::size_t>(j);
    if (j == 0) return x(i, 0);
    if (k > distances.size()) return T(0);
    return x(i, 0) + static_cast<Real<T>>(distances[k - 1]) * x(i, j);
  };
}

/// The largest element of XᴴY − I (or of XᴴY).
template <Scalar T>
double deviation(const DistMatrix<T>& X, const DistMatrix<T>& Y, bool from_identity) {
  const std::vector<T> x = everywhere(X), y = everywhere(Y);
  double most = 0;
  for (Index j = 0; j < Y.cols(); ++j) {
    for (Index i = 0; i < X.cols(); ++i) {
      Accumulator<T> sum = i == j && from_identity ? -1.0 : 0.0;
      for (Index k = 0; k < rows; ++k)
        sum += conjugate(Accumulator<T>(x[static_cast<std::size_t>(k + i * rows)])) *
               Accumulator<T>(y[static_cast<std::size_t>(k + j * rows)]);
      most = std::max(most, std::abs(sum));
    }
  }
  return most;
}

template <Scalar T>
typename BlockBasis<T>::Small adopt(BlockBasis<T>& basis, ColumnSums<T>& sums) {
  const auto sum = [&sums](std::vector<double>& numbers) { sums.with(numbers); };
  sum(basis.local_gram());
  return basis.adopt(sum, 0);
}

}  // namespace

TEMPLATE_TEST_CASE("A block becomes orthonormal, whatever its condition, and what it was is known", "", float,
                   double, std::complex<float>, std::complex<double>) {
  using T = TestType;
  const double epsilon = epsilon_of<T>;
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Space space{grid, Cut::balanced(Axis::all, rows, *grid), Axis::uncut};
    std::vector<double> distances;
    for (double distance = 1; distance > 300 * epsilon; distance /= 10) distances.push_back(distance);
    const auto independent = static_cast<Index>(distances.size()) + 1;
    distances.push_back(epsilon / 10);
    const Index columns = independent + 2;
    CAPTURE(grid->rows(), grid->cols(), columns);

    BlockBasis<T> basis(space);
    basis.reserve(columns);
    ColumnSums<T> sums(grid);
    DistMatrix<T> W = basis.candidate(columns);
    W.fill(nearly_dependent<T>(distances));
    const DistMatrix<T> before = W.clone();
    const auto K = adopt(basis, sums);
    CHECK(basis.width() == independent);
    CHECK(deviation(basis.block(), basis.block(), true) <= 2 * static_cast<double>(columns) * epsilon);
    DistMatrix<T> rest = before.clone();
    basis.add_product(-1, basis.block(), K, rest);
    const std::vector<double> norms = column_norms(before), rests = column_norms(rest);
    for (std::size_t j = 0; j < rests.size(); ++j) CHECK(rests[j] <= 100 * epsilon * norms[0]);

    // The next block is random, so that it has parts in the span of the old one.
    DistMatrix<T> next = basis.candidate(3);
    next.fill(random_elements<T>(6));
    const DistMatrix<T> old = basis.block().clone();
    adopt(basis, sums);
    CHECK(basis.width() == 3);
    CHECK(deviation(basis.block(), basis.block(), true) <= 20 * epsilon);
    CHECK(deviation(old, basis.block(), false) <= 20 * epsilon);
  }
}

TEST_CASE("A block of no columns, and one of zeros, become empty ones") {
  for (const auto& grid : compact_grids()) {
    if (!grid->is_member()) continue;
    const Space space{grid, Cut::balanced(Axis::all, rows, *grid), Axis::uncut};
    BlockBasis<double> basis(space);
    ColumnSums<double> sums(grid);
    basis.reserve(3);
    for (const Index columns : {3, 0}) {
      basis.candidate(columns).set_zero();
      const auto K = adopt(basis, sums);
      CHECK(basis.width() == 0);
      CHECK(K.rows() == 0);
      CHECK(K.cols() == columns);
    }
  }
}
