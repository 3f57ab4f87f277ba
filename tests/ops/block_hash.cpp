// SPDX-License-Identifier: BSD-3-Clause
#include "gridlops/ops/matrix_mult.hpp"

#include "support/grids.hpp"
#include "support/problems.hpp"

using namespace gridlops;
using namespace gridlops::testing;

namespace {

template <Scalar T>
void flip_lowest_bit(T& value) {
  *reinterpret_cast<unsigned char*>(&value) ^= 1;
}

template <Scalar T>
void apply_once(const LinearOperator<T>& A) {
  DistMatrix<T> X(A.domain().grid, A.domain().layout(2)), Y(A.range().grid, A.range().layout(2));
  X.fill(random_elements<T>(3));
  A.apply(T(1), X, T(0), Y);
}

}  // namespace

TEMPLATE_TEST_CASE("The hash of a block is that of its elements, however they are stored", "", float, double,
                   std::complex<float>, std::complex<double>) {
  using T = TestType;
  constexpr Index m = 67, n = 45;
  for (const GridPtr& grid : compact_grids()) {
    for (const Algorithm algorithm : all_algorithms) {
      DistMatrix<T> A(grid, matrix_layout(algorithm, *grid, m, n));
      A.fill(random_elements<T>(1));
      DistMatrix<T> view(grid, A.layout(), A.local());
      const OperatorPtr<T> op = matrix_mult(algorithm, std::move(A));
      const auto hash = block_hash(*op);
      CAPTURE(describe(*grid), name_of(algorithm));
      REQUIRE(hash.has_value() == grid->is_member());
      apply_once(*op);
      CHECK(block_hash(*op) == hash);
      if (algorithm == Algorithm::stationary_a || algorithm == Algorithm::block) {
        const auto packed =
            dense_operator<T>(grid, algorithm, m, n, random_elements<T>(1), {.storage = Storage::packed});
        CHECK(block_hash(*packed) == hash);
        apply_once(*packed);  // from now on it is packed
        CHECK(block_hash(*packed) == hash);
      }
      if (!hash || view.local().empty()) continue;
      T& last = view.local()(view.local().rows - 1, view.local().cols - 1);
      flip_lowest_bit(last);
      CHECK(block_hash(*op) != hash);
      flip_lowest_bit(last);
      CHECK(block_hash(*op) == hash);
    }
    CHECK_FALSE(block_hash(
        *identity<T>(dense_operator<T>(grid, Algorithm::summa, 5, 5, random_elements<T>(1))->domain())));
  }
}
